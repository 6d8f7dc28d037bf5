"""Labelled anomalies of hosts, networks and settings in the files of a made-up fleet."""

import gzip
import json
import re
from datetime import datetime
from pathlib import Path

from tests.findings.planted import MINUTE_MS, Case, Job, Readings

CORES = 192
FAILING_PORTS = 5


def of_hosts(folder: Path, readings: Readings, job: Job, node_of: dict[str, str]) -> list[Case]:
    """Change the pages of a host for an hour each: disks, cores, load, memory, swap, no work.

    For two hours and more a port of it is full; ports of five other hosts fail together.
    """
    node = node_of[job.gpus[0]]
    spans = [job.slot(number) for number in range(6)] + [job.slot(2, 160 * MINUTE_MS)]
    for span in spans[:2]:
        readings.scale(readings.of(job.gpus, span), 0.4)
    readings.scale(rows := readings.of(job.gpus, spans[5]), 0.4)
    readings.columns["gpu_busy_ratio"][rows] = 0.3
    others = [name for name in sorted(set(node_of.values())) if name != node][:FAILING_PORTS]
    first = int(readings.at_ms.min())
    path = folder / "node_exporter.prom.gz"
    pages = gzip.decompress(path.read_bytes()).decode().split("# scraped_at ")
    for number, page in enumerate(pages):
        if f"http://{node}:" in page:
            pages[number] = _page(page, spans)
        elif any(f"http://{other}:" in page for other in others):
            is_out = first + 20 * MINUTE_MS <= _scraped_ms(page) < first + 50 * MINUTE_MS
            new = r"\1 1" if is_out else r"\g<0>"
            pages[number] = re.sub(r'(node_infiniband_state_id\{device="mlx5_0".*\}) 4', new, page)
    path.write_bytes(gzip.compress("# scraped_at ".join(pages).encode(), mtime=0))
    uses = ("use_drop", "power_drop")
    return [
        Case("io_starved", job.run_id, uses), Case("small_reads", job.run_id, uses),
        Case("cpu_starved", job.run_id, uses), Case("unexplained_wait", job.run_id, uses),
        Case("cpu_oversubscribed", job.run_id), Case("host_memory_full", job.run_id),
        Case("swap_in_use", job.run_id), Case("port_saturated", node),
        Case("fabric_fault", "atlas"),
    ]  # fmt: skip


def _scraped_ms(page: str) -> int:
    return int(datetime.fromisoformat(page.split(" ", 1)[0]).timestamp() * 1000)


def _page(page: str, spans: list[tuple[int, int]]) -> str:
    at = _scraped_ms(page)
    # how much of each span has passed
    waits, works, _, _, swaps, rests, fills = (
        max(0, min(at, end) - begin) / 1000 for begin, end in spans
    )
    cores = {
        "iowait": 0.25 * waits, "user": 0.68 * works - 0.19 * rests, "system": -0.04 * rests,
        "idle": -0.25 * waits - 0.68 * works + 0.23 * rests,
    }  # fmt: skip
    shift = {f'node_cpu_seconds_total{{cpu="0",mode="{mode}"}}': CORES * share
             for mode, share in cores.items()}  # fmt: skip
    shift['node_disk_reads_completed_total{device="nvme0n1"}'] = 4e4 * waits
    shift['node_network_receive_bytes_total{device="eth0"}'] = 1.2e10 * fills
    head, *series = page.rstrip("\n").split("\n")
    values = {name: float(value) for name, value in (line.rsplit(" ", 1) for line in series)}
    values |= {name: values[name] + more for name, more in shift.items()}
    if spans[3][0] <= at <= spans[3][1]:
        values["node_memory_MemAvailable_bytes"] = 2.1e10
    values |= {
        "node_load1": 380 if spans[2][0] <= at <= spans[2][1] else 40,
        "node_memory_SwapTotal_bytes": 6.4e10,
        "node_memory_SwapFree_bytes": 6.4e10 - 8e9 * swaps / 3600,
        'node_disk_io_time_seconds_total{device="nvme0n1"}': 0,
    }
    return "\n".join([head, *(f"{name} {value:.12g}" for name, value in values.items())]) + "\n"


def sockets(folder: Path) -> list[Case]:
    """Let a gang that logs what NCCL does communicate over sockets."""
    for path in sorted((folder / "nccl_debug").glob("*.log"))[:1]:
        path.write_text(re.sub(r"(?m)NET/IB/0/GDRDMA$", "NET/Socket/0", path.read_text()))
        return [Case("socket_fallback", path.stem.rsplit("-", 1)[0])]
    return []


def settings(folder: Path, gang: Job, spread: Job, node_of: dict[str, str]) -> list[Case]:
    """Write snapshots of all nodes, three of them odd, and of two jobs, one on several nodes."""
    nodes = sorted(set(node_of.values()))
    usual = {
        "vm.swappiness": "10", "cpu.governor": "performance", "fabric.switches": "4",
        "fabric.manager": "running",
    }  # fmt: skip
    odd: dict[str, dict[str, str]] = {
        nodes[0]: {"vm.swappiness": "60"}, nodes[1]: {"cpu.governor": "powersave"},
        nodes[2]: {"fabric.manager": "not running"},
    }  # fmt: skip
    taken = [(node, spread.begin, "", {**usual, **odd.get(node, {})}) for node in nodes]
    taken.append((node_of[gang.gpus[0]], gang.begin, gang.run_id, {"env:NCCL_IB_DISABLE": "1"}))
    for place, node in enumerate(sorted({node_of[gpu] for gpu in spread.gpus})):
        threads = {"env:OMP_NUM_THREADS": "1" if place else "16"}
        taken.append((node, spread.begin, spread.run_id, threads))
    lines = [
        {"goodput_snapshot": 1, "node": node, "ts": at // 1000, "run_id": run,
         "is_container": False, "settings": values, "unknown": {}}
        for node, at, run, values in taken
    ]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "snapshots.jsonl").write_text(text)
    with (folder / "demo.toml").open("a") as file:
        file.write(
            '\n[[ingest]]\npath = "snapshots.jsonl"\nsource = "node-snapshot"\ncluster = "atlas"\n'
        )
    rules = ("node_settings_differ", "node_misconfigured", "fabric_manager_down")
    return [
        *(Case(rule, node) for rule, node in zip(rules, odd, strict=True)),
        Case("job_misconfigured", gang.run_id),
        Case("job_settings_differ", spread.run_id),
    ]

"""Labelled anomalies in the files of a made-up fleet: what readings show when something is wrong.

The jobs are those of `plans.with_cases`; when and where they ran is in `truth_notes.jsonl`. Each
anomaly lasts an hour or two within one of them, and is written into the files that a site has.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from tests.findings import host_faults
from tests.findings.planted import (
    BLANK_W,
    HOUR_MS,
    LENGTH_MS,
    MINUTE_MS,
    USES,
    Case,
    Change,
    Job,
    Readings,
)  # fmt: skip

NVLINK_BYTES_PER_S = 450e9  # of an H100, a direction
READ_SHARE = 0.9  # of the minutes of an anomaly
# rule, slot of the job's life, GPU of the gang, what else may be seen in it
OF_GANG: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("peer_sm_active", 0, 0, ()), ("standing_energy", 0, 4, ()), ("memory_errors", 0, 6, ()),
    ("peer_sm_clock", 1, 1, ()), ("frozen_series", 1, 5, ("standing_power",)),
    ("peer_power", 2, 2, ()), ("standing_power", 2, 6, ()), ("peer_temperature", 3, 3, ()),
    ("stuck_profiling", 3, 7, ("peer_sm_active",)), ("rejected_values", 4, 0, ()),
    ("silent_gpu", 4, 4, ()), ("standing_temperature", 5, 5, ()),
)  # fmt: skip


def add(folder: Path) -> list[Case]:
    """Put all anomalies into a fleet's files; return what they are."""
    notes = [json.loads(line) for line in (folder / "truth_notes.jsonl").read_text().splitlines()]
    jobs = {
        note["story"]: Job(note["run_id"], note["from_ms"], note["to_ms"], note["gpu_uuids"])
        for note in notes
        if note["kind"] == "story"
    }
    readings = Readings(
        pl.concat(pl.read_parquet(file) for file in sorted((folder / "telemetry").iterdir()))
    )
    inventory = pl.read_csv(folder / "inventory.csv")
    node_of = dict(inventory.select("gpu_uuid", "node").iter_rows())
    found = [
        *_of_gang(readings, jobs["case-gang"]), *_of_node(readings, jobs["case-gang"], node_of),
        *_of_uses(readings, jobs), *_idle_power(readings, inventory, jobs),
        *_driver_skew(folder, inventory),
        *host_faults.of_hosts(folder, readings, jobs["case-hosts"], node_of),
        _slower_steps(folder, jobs["case-steps"]), *_of_events(folder, jobs),
        *host_faults.sockets(folder),
        *host_faults.settings(folder, jobs["case-gang"], jobs["llm-pretrain"], node_of),
        Case("checkpoint_overhead", jobs["case-saves"].run_id, ("periodic_gaps",)),
        Case("reservation_idle", "atlas"), Case("stranded_gpus", "atlas"),
    ]  # fmt: skip
    readings.write(folder / "telemetry")
    return found


def _changes(readings: Readings) -> dict[str, Change]:
    """Return what happens to the rows of a GPU, by the rule that is to see it."""
    values = readings.columns

    def changed(name: str, value: float, *, is_added: bool = False) -> Change:
        def change(rows: NDArray[Any]) -> None:
            values[name][rows] = value + (values[name][rows] if is_added else 0.0)

        return change

    def still(*names: str, uses_vary: bool = False) -> Change:
        def change(rows: NDArray[Any]) -> None:
            if uses_vary:  # by turns of ten minutes, so that the value should follow
                by_turns = readings.at_ms[rows] // (10 * MINUTE_MS) % 2 == 0
                for name in USES:
                    values[name][rows[by_turns]] *= 0.4
            for name in names:
                values[name][rows] = values[name][rows[0]]

        return change

    def unprofiled(rows: NDArray[Any]) -> None:
        for name in USES:
            values[name][rows] = 0.0

    def blank(rows: NDArray[Any]) -> None:
        values["power_w"][rows[::8]] = BLANK_W

    def vanish(rows: NDArray[Any]) -> None:
        readings.is_dropped[rows] = True

    return {
        "peer_sm_active": lambda rows: readings.scale(rows, 0.45),
        "standing_energy": still("energy_j"),
        "memory_errors": changed("ecc_corrected_volatile_total", 5_000.0, is_added=True),
        "peer_sm_clock": changed("sm_clock_hz", 1.2e9),
        "frozen_series": still("power_w", "energy_j", *USES),
        "peer_power": lambda rows: readings.draw(rows, values["power_w"][rows] - 160.0),
        "standing_power": still("power_w", uses_vary=True),
        "peer_temperature": changed("gpu_temperature_c", 22.0, is_added=True),
        "stuck_profiling": unprofiled, "rejected_values": blank, "silent_gpu": vanish,
        "standing_temperature": still("gpu_temperature_c", uses_vary=True),
    }  # fmt: skip


def _of_gang(readings: Readings, job: Job) -> list[Case]:
    """Spoil one GPU after the other of a gang."""
    changes, found = _changes(readings), []
    for rule, slot, place, also in OF_GANG:
        span = job.slot(slot, 90 * MINUTE_MS if rule == "standing_temperature" else LENGTH_MS)
        rows = readings.of([job.gpus[place]], span)
        changes[rule](rows)
        # a silence of the monitoring may take a part of it
        minutes = len(np.unique(readings.at_ms[rows] // MINUTE_MS))
        is_read = minutes >= READ_SHARE * (span[1] - span[0]) / MINUTE_MS
        found.append(Case(rule, job.gpus[place], also, is_read))
    return found


def _of_node(readings: Readings, job: Job, node_of: dict[str, str]) -> list[Case]:
    """Warm all GPUs of a node up."""
    node = node_of[job.gpus[0]]
    rows = readings.of([gpu for gpu in node_of if node_of[gpu] == node], job.slot(0, 3 * HOUR_MS))
    readings.columns["gpu_temperature_c"][rows] += 14.0
    return [Case("node_temperature", node)]


def _of_uses(readings: Readings, jobs: dict[str, Job]) -> list[Case]:
    """Lower what whole jobs use: for a time, for good, at intervals."""
    names = ("use-drop", "power-drop", "low-use", "gaps", "half-use", "hollow", "steps")
    drop, power, low, gaps, half, hollow, grows = (jobs[f"case-{name}"] for name in names)
    readings.scale(readings.of(drop.gpus, drop.slot(1, 100 * MINUTE_MS)), 0.35)
    rows = readings.of(power.gpus, power.slot(1, 100 * MINUTE_MS))
    readings.draw(rows, 78 + (readings.columns["power_w"][rows] - 78) * 0.4)
    readings.scale(readings.of(low.gpus, (low.begin, low.end)), 0.08)
    readings.scale(readings.of(half.gpus, (half.begin, half.end)), 0.45)
    rows = readings.of(hollow.gpus, (hollow.begin, hollow.end))
    for name, value in zip((*USES, "gpu_busy_ratio"), (0.99, 0.97, 0.0, 0.01, 1.0), strict=True):
        readings.columns[name][rows] = value
    rows = readings.of(half.gpus, half.slot(0, 100 * MINUTE_MS))
    for name in ("nvlink_tx_bytes_per_s", "nvlink_rx_bytes_per_s"):
        readings.columns[name][rows] = 0.98 * NVLINK_BYTES_PER_S
    rows = readings.of(grows.gpus[3:4], (grows.begin, grows.end))
    readings.columns["memory_used_bytes"][rows] = np.linspace(30e9, 60e9, len(rows))
    for begin in range(gaps.begin + 30 * MINUTE_MS, gaps.end - 10 * MINUTE_MS, 15 * MINUTE_MS):
        rows = readings.of(gaps.gpus, (begin, begin + 3 * MINUTE_MS))
        for name in (*USES, "gpu_busy_ratio"):
            readings.columns[name][rows] = 0.0
        readings.draw(rows, np.full(len(rows), 80.0))
    return [
        Case("use_drop", drop.run_id), Case("power_drop", drop.run_id),
        Case("power_drop", power.run_id), Case("low_use", low.run_id),
        Case("half_use", half.run_id), Case("nvlink_saturated", half.run_id),
        Case("busy_without_work", hollow.run_id), Case("memory_growth", grows.gpus[3]),
        Case("periodic_gaps", gaps.run_id, ("idle_allocation", "gaps_between_steps")),
    ]  # fmt: skip


def _idle_power(readings: Readings, inventory: pl.DataFrame, jobs: dict[str, Job]) -> list[Case]:
    """Raise the power of idle GPUs of the node that is idle most, of a model with many nodes."""
    model = inventory["gpu_model"].mode()[0]
    taken = {gpu for job in jobs.values() for gpu in job.gpus}
    nodes = inventory.filter((pl.col("gpu_model") == model) & (pl.col("mig").is_null()))
    idle: dict[str, NDArray[Any]] = {}
    for (node,), of_node in nodes.group_by("node"):
        gpus = of_node["gpu_uuid"].to_list()
        if taken & set(gpus):
            continue
        rows = readings.of(gpus, (0, 2**62))
        idle[str(node)] = rows[readings.columns["engine_active_ratio"][rows] == 0]
    node = max(idle, key=lambda name: len(idle[name]))
    readings.draw(idle[node], readings.columns["power_w"][idle[node]] + 60.0)
    return [Case("node_idle_power", node)]


def _driver_skew(folder: Path, inventory: pl.DataFrame) -> list[Case]:
    """Give a node another driver: all jobs that it shares with other nodes have two versions."""
    node = inventory.filter(pl.col("mig").is_null())["node"][0]
    version = pl.when(pl.col("node") == node).then(pl.lit("570.86.15")).otherwise("driver_version")
    inventory.with_columns(version.alias("driver_version")).write_csv(folder / "inventory.csv")
    runs = (
        pl.read_parquet(folder / "truth.parquet", columns=["gpu_uuid", "run_id", "start_ms"])
        .drop_nulls()
        .unique()
        .join(inventory.select("gpu_uuid", "node"), on="gpu_uuid")
        .group_by("run_id", "start_ms")  # of a job that was requeued the nodes are others each time
        .agg(nodes=pl.col("node").n_unique(), has_it=(pl.col("node") == node).any())
    )
    skewed = runs.filter(pl.col("has_it") & (pl.col("nodes") > 1))["run_id"].unique()
    return [Case("driver_skew", run) for run in skewed]


def _of_events(folder: Path, jobs: dict[str, Job]) -> list[Case]:
    """Report a loss that diverges and one that ends as NaN, communication, and an input need."""
    drop, power, hosts = (jobs[f"case-{name}"] for name in ("use-drop", "power-drop", "hosts"))
    diverges_at = (power.begin + 3 * power.end) / 4 / 1000
    for path in sorted((folder / "job_events").iterdir()):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        for number, line in enumerate(lines):
            event = json.loads(line)
            usual = 2.0 + 0.1 * (number % 3)
            more: dict[str, Any] = {}
            if event["event"] == "job.start" and event["run_id"] == hosts.run_id:
                more = {"input_bytes_per_gpu_s": 1e9}
            elif event["event"] == "step" and event["run_id"] == drop.run_id:
                more = {"loss": usual if event["ts"] < drop.end / 1000 - 120 else "NaN"}
            elif event["event"] == "step" and event["run_id"] == power.run_id:
                more = {"loss": 40.0 if event["ts"] >= diverges_at else usual}
                more["comm_s"] = round(0.3 * event["dur_s"], 3)
            if more:
                lines[number] = json.dumps(event | more, separators=(",", ":"))
        path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    return [
        Case("loss_not_finite", drop.run_id), Case("loss_diverged", power.run_id),
        Case("communication_share", power.run_id), Case("slow_feed", hosts.run_id),
    ]  # fmt: skip


def _slower_steps(folder: Path, job: Job) -> Case:
    """Make one step of each two, from the middle of a job on: they take twice as long.

    A step before a save stays as it is; numbers close up, those of saves with them.
    """
    middle = (job.begin + job.end) // 2 / 1000
    number_of: dict[int, int] = {}
    first: dict[str, Any] | None = None

    def numbered(event: dict[str, Any]) -> str:
        number = number_of.setdefault(event["step"], len(set(number_of.values())) + 1)
        return json.dumps(event | {"step": number}, separators=(",", ":"))

    for path in sorted((folder / "job_events").iterdir()):
        kept: list[str] = []
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            event = json.loads(line)
            if event.get("run_id") != job.run_id:
                kept.append(line)
            elif event["event"] == "step" and event["ts"] >= middle and first is None:
                first = event
            elif event["event"] == "step" and first is not None:
                kept.append(numbered(event | {"dur_s": round(event["dur_s"] + first["dur_s"], 3)}))
                number_of[first["step"]] = number_of[event["step"]]
                first = None
            else:
                if first is not None:
                    kept.append(numbered(first))
                    first = None
                kept.append(numbered(event) if "step" in event else line)
        path.write_bytes(gzip.compress(("\n".join(kept) + "\n").encode(), mtime=0))
    return Case("steps_slower", job.run_id)

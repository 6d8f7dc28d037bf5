"""Pages of node_exporter: every ten minutes of each host, and InfiniBand links that are lost.

Two of a host's InfiniBand ports and one of its Ethernet interfaces stand for all.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from goodput_synthetic.fleet.fleet import CPUS_PER_NODE, MEMORY_MIB, Fleet
from goodput_synthetic.fleet.outages import DAY_S
from goodput_synthetic.fleet.schedule import JobRun, Schedule
from goodput_synthetic.fleet.written.events import write_gzip

INTERVAL_S = 600
LOST_S = 1_800
PORTS = ("mlx5_0", "mlx5_1")
LOST_PORT = "mlx5_1"
NDR_BYTES_PER_S = 5e10
UNHEARD = ("down", "powered_off")
BUSY = {"user": 0.24, "system": 0.05, "iowait": 0.01}  # shares of the cores while a job runs
WAITING = 0.16  # of the cores, where a job waits for disks
SWITCH_RACK, SWITCH_H = 1, 7  # whose leaf switch restarts, hour of the last day
ERRORS_A_READING = {
    "port_errors_received": 3,
    "port_discards_transmitted": 2,
    "link_error_recovery": 1,
}
IDLE = {"user": 0.01, "system": 0.01, "iowait": 0.001}


@dataclass(frozen=True)
class LostLink:
    """A link that is down for a time (seconds from the start) while a gang of nodes runs."""

    node: int
    start_s: int
    end_s: int
    job_id: int = 0
    port: str = LOST_PORT


def lost_link(schedule: Schedule, total_s: int) -> LostLink | None:
    """Return the link that is lost, in the middle of the longest run of several nodes."""
    gangs = [run for run in schedule.runs if run.start_s is not None and len(run.nodes) > 1]
    if not gangs:
        return None

    def length(run: JobRun) -> tuple[int, int]:
        return (run.end_s or total_s) - (run.start_s or 0), run.request.job_id

    run = max(gangs, key=length)
    middle = (run.start_s or 0) + length(run)[0] // 2
    begin = middle // INTERVAL_S * INTERVAL_S
    return LostLink(run.nodes[-1], begin, begin + LOST_S, run.request.job_id)


def lost_by_switch(fleet: Fleet, total_s: int) -> list[LostLink]:
    """Return the links of a rack that are lost together, while their switch restarts."""
    begin = total_s - DAY_S + SWITCH_H * 3_600
    nodes = [n for n, node in enumerate(fleet.nodes) if node.rack == SWITCH_RACK]
    return [LostLink(n, begin, begin + LOST_S, port=PORTS[0]) for n in nodes if begin > 0]


def write(
    path: Path, fleet: Fleet, schedule: Schedule, lost: list[LostLink], start: datetime,
    total_s: int, seed: int, *, has_errors: bool = False,
) -> None:  # fmt: skip
    """Write the pages of all hosts, host by host, into one compressed file.

    has_errors: with the error counters of the ports of one host, one of which counts.
    """
    found = pages(fleet, schedule, lost, start, total_s, seed, (0, total_s), has_errors=has_errors)
    write_gzip(path, ["\n".join(found), "\n"])


def pages(
    fleet: Fleet, schedule: Schedule, lost: list[LostLink], start: datetime, total_s: int,
    seed: int, window: tuple[int, int], *, has_errors: bool = False,
) -> list[str]:  # fmt: skip
    """Return the pages of all hosts that are scraped in a window, in seconds from the start."""
    at = np.arange(0, total_s, INTERVAL_S)
    found: list[str] = []
    for number, node in enumerate(fleet.nodes):
        is_busy, is_gang, is_waiting, is_heard = _times(schedule, number, at, total_s)
        is_heard &= (at >= window[0]) & (at < window[1])
        rng = np.random.default_rng([seed, 21, number])
        mine = {link.port: link for link in lost if link.node == number}
        series = _series(rng, is_busy, is_gang, is_waiting, at, mine)
        if has_errors and number == len(fleet.nodes) // 2:
            series |= _errors(at)
        names, columns = list(series), [values.tolist() for values in series.values()]
        for row in np.flatnonzero(is_heard).tolist():
            moment = (start + timedelta(seconds=int(at[row]))).astimezone(UTC)
            lines = [f"# scraped_at {moment:%Y-%m-%dT%H:%M:%SZ} http://{node.name}:9100/metrics"]
            lines += [
                f"{name} {values[row]:.10g}" for name, values in zip(names, columns, strict=True)
            ]
            found.append("\n".join(lines))
    return found


def _times(schedule: Schedule, node: int, at: Any, total_s: int) -> tuple[Any, Any, Any, Any]:
    """Return at which times the host has a job, one of several nodes, or that waits for disks.

    The last are the times at which the host is heard of.
    """
    is_busy, is_gang, is_waiting = np.zeros((3, len(at)), bool)
    is_heard = at >= 0
    for run in schedule.runs:
        if run.start_s is not None and node in run.nodes:
            is_in = (at >= run.start_s) & (at < (run.end_s or total_s))
            is_busy |= is_in
            is_gang |= is_in & (len(run.nodes) > 1)
            is_waiting |= is_in & ("iowait" in run.request.options)
    for outage in schedule.outages:
        if outage.node == node and outage.state in UNHEARD and outage.has_begun:
            is_heard &= (at < outage.start_s) | (at >= (outage.end_s or total_s))
    return is_busy, is_gang, is_waiting, is_heard


def _errors(at: Any) -> dict[str, Any]:
    """Return the error counters of ports; those of the first port grow with these times."""
    return {
        f'node_infiniband_{name}_total{{device="{port}",port="1"}}': of_reading * at // INTERVAL_S
        for port, grows in zip(PORTS, (1, 0), strict=True)
        for name, a_reading in ERRORS_A_READING.items()
        for of_reading in (grows * a_reading,)
    }


def _series(
    rng: Any, is_busy: Any, is_gang: Any, is_waiting: Any, at: Any, lost: dict[str, LostLink]
) -> dict[str, Any]:
    """Return the values of each series at all times."""

    def total(per_s: Any) -> Any:
        """Return a counter that grows so much a second, more or less."""
        return np.cumsum(per_s * INTERVAL_S * rng.uniform(0.8, 1.2, len(at)))

    def level(busy: float, idle: float) -> Any:
        return np.where(is_busy, busy, idle)

    levels = {mode: level(BUSY[mode], IDLE[mode]) for mode in BUSY}
    levels["iowait"] = np.where(is_waiting, WAITING, levels["iowait"])
    modes = {mode: total(CPUS_PER_NODE * of_mode) for mode, of_mode in levels.items()}
    rest = CPUS_PER_NODE * INTERVAL_S * np.arange(1, len(at) + 1) - sum(modes.values())
    memory = MEMORY_MIB * 2.0**20
    found = {
        f'node_cpu_seconds_total{{cpu="0",mode="{mode}"}}': values
        for mode, values in {**modes, "idle": rest}.items()
    }
    found |= {
        "node_memory_MemTotal_bytes": np.full(len(at), memory),
        "node_memory_MemAvailable_bytes": memory * (1 - level(0.42, 0.04)),
        'node_disk_read_bytes_total{device="nvme0n1"}': total(level(8e8, 1e6)),
        'node_disk_written_bytes_total{device="nvme0n1"}': total(level(2e8, 2e6)),
        "node_netstat_Tcp_OutSegs": np.floor(total(level(4e3, 2e2))),
        "node_netstat_Tcp_RetransSegs": np.floor(total(level(0.2, 0.01))),
        'node_network_receive_bytes_total{device="eth0"}': total(level(3e8, 1e6)),
        'node_network_transmit_bytes_total{device="eth0"}': total(level(1e8, 1e6)),
        'node_network_up{device="eth0"}': np.ones(len(at)),
        'node_network_speed_bytes{device="eth0"}': np.full(len(at), 1.25e10),
    }
    read = found['node_disk_read_bytes_total{device="nvme0n1"}']
    found['node_disk_reads_completed_total{device="nvme0n1"}'] = np.floor(read / 2**20)
    for port in PORTS:
        is_down = np.zeros(len(at), bool)
        if port in lost:
            is_down = (at >= lost[port].start_s) & (at < lost[port].end_s)
        was_lost = np.cumsum(is_down) > 0
        traffic = np.where(is_gang & ~is_down, 1.8e10, 0.0)
        labels = f'{{device="{port}",port="1"}}'
        found |= {
            f"node_infiniband_port_data_received_bytes_total{labels}": total(traffic),
            f"node_infiniband_port_data_transmitted_bytes_total{labels}": total(traffic),
            f"node_infiniband_state_id{labels}": np.where(is_down, 1, 4),
            f"node_infiniband_rate_bytes_per_second{labels}": np.full(len(at), NDR_BYTES_PER_S),
            f"node_infiniband_link_downed_total{labels}": was_lost.astype(float),
            f"node_infiniband_symbol_error_total{labels}": np.where(was_lost, 214.0, 0.0),
        }
    return found

"""Maps fields of recorded lines to columns, and their units to base units.

Names of metrics are canonical ones; units come from NVML's header (telemetry notes, section 2).
"""

from functools import cache
from typing import Any, Final, NamedTuple

from goodput_ingest.formats import raw_tables
from goodput_ingest.sources.nvml.readings import ROWS

MILLI = 1e-3
MEGA = 1e6
KIB, SECTOR = 1024, 512
JIFFY_S = 0.01  # USER_HZ is 100 on every Linux that runs NVIDIA's driver

RATIO_MAX = 1.0001  # above is a fault of the reading, not rounding
COUNTER_MAX = 2.0**63


class Unit(NamedTuple):
    """Scale to the base unit, and the lowest and highest value in it."""

    scale: float = 1
    low: float = 0
    high: float = COUNTER_MAX


UNITS: Final = {  # by the end of a field's name
    "_pct": Unit(0.01, high=RATIO_MAX),
    "_mw": Unit(MILLI, high=10_000.0),
    "_mj": Unit(MILLI),
    "_mhz": Unit(MEGA, high=1e10),
    "_mibs": Unit(KIB * KIB, high=1e13),  # a second
    "_kib": Unit(KIB),
    "_ns": Unit(1e-9),
    "temp_c": Unit(low=-50.0, high=250.0),
    "mem_used": Unit(high=2.0**50),
    "event_reasons": Unit(high=2.0**62),
}
OF_SAMPLES = raw_tables.columns("gpu_samples")


@cache
def unit(name: str) -> Unit:
    """Return the unit that a field's name says."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), Unit())


def _columns(of: str) -> dict[str, str]:
    """Return the column or metric of each field that has one; of: as in `readings.csv`."""
    return {
        name: column
        for row in ROWS
        if row["of"] == of
        for name, column in zip(row["name"].split(), row["column"].split(), strict=False)
    }


def _in_order(columns: dict[str, str]) -> dict[str, str]:
    """Return fields in the order of their columns in the raw table."""
    return dict(sorted(columns.items(), key=lambda item: [*OF_SAMPLES].index(item[1])))


# column or metric by field of the line
FAST = _in_order(_columns("fast"))
GPM = _in_order(_columns("gpm"))  # shares in percent, throughput in MiB/s
SLOW = _columns("slow")
SHARES = tuple(name for name in GPM if name.endswith("_pct"))
WHOLE_COLUMNS = ("clocks_event_reasons", "memory_used_bytes")
REMAPPED = (  # nvmlDeviceGetRemappedRows gives them in this order
    "rows_remapped_correctable_total",
    "rows_remapped_uncorrectable_total",
    "row_remap_pending",
    "row_remap_failed",
)
LINKS = _columns("link")  # per link in the recording; kept as sums over the links of the GPU
HOST = (  # columns of raw.node_samples in order: field of the line, scale
    ("memtotal_kb", KIB),
    ("memavailable_kb", KIB),
    ("cached_kb", KIB),
    ("dirty_kb", KIB),
    ("disk_read_sectors", SECTOR),
    ("disk_write_sectors", SECTOR),
    ("disk_reads", 1),
    ("disk_busy_ms", 0.001),
)
IDLE_JIFFIES = ("idle", "iowait")
GUEST_JIFFIES = ("guest", "guest_nice")  # counted inside user and nice already

DECIMALS = 12  # of scaled values, which DuckDB packs as decimals; NVML counts nanoseconds
SERIES = ("gpu_uuid", "gpu_instance")  # rows of one series differ less: they take less space
SCHEMAS: dict[str, dict[str, Any]] = {
    "gpus": raw_tables.columns("gpus", "valid_to_at"),
    "gpu_instances": raw_tables.columns("gpu_instances", "slices_of", "slurm_index"),
    "gpu_samples": {
        name: OF_SAMPLES[name]
        for name in (
            *("source", *SERIES, "ts", *FAST.values(), *GPM.values()),
            *("is_flagged", "flagged_metrics"),
        )
    },
    "gpu_samples_other": raw_tables.columns("gpu_samples_other"),
    "gpu_processes": raw_tables.columns("gpu_processes"),
    "processes": raw_tables.columns("processes"),
    "gpu_owners": raw_tables.columns("gpu_owners"),
    "gpu_events": raw_tables.columns("gpu_events", "pid", "process_name"),
    "node_samples": raw_tables.columns(
        *("node_samples", "cluster", "cpu_steal_s", "swap_total_bytes", "swap_free_bytes"),
        *("tcp_sent_segments", "tcp_retransmitted_segments", "power_w"),
    ),
}

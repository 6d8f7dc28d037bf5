"""A recording of NVML: JSON lines of kinds meta, fast, slow, host, as our recorder writes them.

`meta` names the node and its GPUs; `fast` is one reading of one GPU several times a second, with
GPM shares in percent; `slow` has counters and processes once a second; `host` is the node itself.
A line speaks of a GPU by its index, which the last `meta` line turns into a UUID.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from goodput_ingest import files, json_lines
from goodput_ingest.json_lines import FieldError
from goodput_ingest.pci import pci_bus_id
from goodput_ingest.source import Batch, ReadOptions, Reject
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

PERCENT = 0.01
MILLI = 1e-3
NANO = 1e-9
MEGA = 1e6
KIB, MIB, SECTOR = 1024, 1024 * 1024, 512
JIFFY_S = 0.01  # USER_HZ is 100 on every Linux that runs NVIDIA's driver

RATIO_MAX = 1.0001  # above is a fault of the reading, not rounding
POWER_MAX_W = 10_000.0
CLOCK_MAX_HZ = 1e10
TEMPERATURE_MIN_C, TEMPERATURE_MAX_C = -50.0, 250.0
BYTES_MAX = 2.0**50
RATE_MAX_BYTES_PER_S = 1e13
COUNTER_MAX = 2.0**63
PIDS_MAX = 1000

# raw column, field of the line, scale, highest value
FAST = (
    ("gpu_busy_ratio", "util_gpu_pct", PERCENT, RATIO_MAX),
    ("memory_busy_ratio", "util_mem_pct", PERCENT, RATIO_MAX),
    ("power_w", "power_mw", MILLI, POWER_MAX_W),
    ("energy_j", "energy_mj", MILLI, COUNTER_MAX),
    ("sm_clock_hz", "sm_mhz", MEGA, CLOCK_MAX_HZ),
    ("memory_clock_hz", "mem_mhz", MEGA, CLOCK_MAX_HZ),
    ("clocks_event_reasons", "event_reasons", 1, 2.0**62),
    ("gpu_temperature_c", "temp_c", 1, TEMPERATURE_MAX_C),
    ("memory_temperature_c", "mem_temp_c", 1, TEMPERATURE_MAX_C),
    ("memory_used_bytes", "mem_used", 1, BYTES_MAX),
)
GPM = (  # nvmlGpmMetricsGet: shares in percent, throughput in MiB/s (telemetry notes, section 2)
    ("engine_active_ratio", "gr_active_pct", PERCENT, RATIO_MAX),
    ("sm_active_ratio", "sm_active_pct", PERCENT, RATIO_MAX),
    ("sm_occupancy_ratio", "sm_occupancy_pct", PERCENT, RATIO_MAX),
    ("tensor_active_ratio", "tensor_any_pct", PERCENT, RATIO_MAX),
    ("dram_active_ratio", "dram_bw_pct", PERCENT, RATIO_MAX),
    ("fp64_active_ratio", "fp64_pct", PERCENT, RATIO_MAX),
    ("fp32_active_ratio", "fp32_pct", PERCENT, RATIO_MAX),
    ("fp16_active_ratio", "fp16_pct", PERCENT, RATIO_MAX),
    ("nvlink_tx_bytes_per_s", "nvlink_tx_mibs", MIB, RATE_MAX_BYTES_PER_S),
    ("nvlink_rx_bytes_per_s", "nvlink_rx_mibs", MIB, RATE_MAX_BYTES_PER_S),
    ("pcie_tx_bytes_per_s", "pcie_tx_mibs", MIB, RATE_MAX_BYTES_PER_S),
    ("pcie_rx_bytes_per_s", "pcie_rx_mibs", MIB, RATE_MAX_BYTES_PER_S),
)
SHARES = tuple(name for _, name, _, _ in GPM if name.endswith("_pct"))
# canonical metric, field of the line, scale
SLOW = (
    ("throttle_power_s", "viol_power_ns", NANO),
    ("throttle_thermal_s", "viol_thermal_ns", NANO),
    ("throttle_sync_boost_s", "viol_sync_boost_ns", NANO),
    ("throttle_board_limit_s", "viol_board_limit_ns", NANO),
    ("throttle_low_utilisation_s", "viol_low_util_ns", NANO),
    ("throttle_reliability_s", "viol_reliability_ns", NANO),
    ("throttle_app_clocks_s", "viol_app_clocks_ns", NANO),
    ("throttle_base_clocks_s", "viol_base_clocks_ns", NANO),
    ("throttle_sw_thermal_s", "evt_sw_thermal_ns", NANO),
    ("throttle_hw_thermal_s", "evt_hw_thermal_ns", NANO),
    ("throttle_power_brake_s", "evt_hw_brake_ns", NANO),
    ("ecc_corrected_volatile_total", "ecc_corrected", 1),
    ("ecc_uncorrected_volatile_total", "ecc_uncorrected", 1),
    ("pcie_replay_total", "pcie_replays", 1),
    ("pcie_generation", "pcie_gen", 1),
    ("pcie_width", "pcie_width", 1),
    ("power_limit_w", "power_limit_mw", MILLI),
    ("power_limit_enforced_w", "power_limit_current_mw", MILLI),
    ("performance_state", "pstate", 1),
    ("nvlink_raw_tx_bytes_total", "nvlink_raw_tx_kib", KIB),
    ("nvlink_raw_rx_bytes_total", "nvlink_raw_rx_kib", KIB),
)
REMAPPED = (  # nvmlDeviceGetRemappedRows gives them in this order
    "rows_remapped_correctable_total",
    "rows_remapped_uncorrectable_total",
    "row_remap_pending",
    "row_remap_failed",
)
LINKS = (  # per link in the recording; kept as sums over the links of the GPU
    ("nvlink_tx_bytes_total", "tx_kib", KIB),
    ("nvlink_rx_bytes_total", "rx_kib", KIB),
    ("nvlink_replay_total", "replay", 1),
    ("nvlink_recovery_total", "recovery", 1),
    ("nvlink_crc_error_total", "crc", 1),
)
IDLE_JIFFIES = ("idle", "iowait")
GUEST_JIFFIES = ("guest", "guest_nice")  # counted inside user and nice already
WITHOUT_ROWS = ("clock", "end")

SCHEMAS: dict[str, dict[str, Any]] = {
    "gpus": {
        "source": pl.String,
        "cluster": pl.String,
        "gpu_uuid": pl.String,
        "node": pl.String,
        "gpu_index": pl.Int32,
        "slurm_index": pl.Int32,
        "pci_bus_id": pl.String,
        "gpu_model": pl.String,
        "memory_bytes": pl.Int64,
        "power_limit_w": pl.Float64,
        "sm_clock_max_hz": pl.Float64,
        "slowdown_temperature_c": pl.Float64,
        "driver_version": pl.String,
        "valid_from_at": pl.Datetime("us"),
    },
    "gpu_samples": {
        "source": pl.String,
        "gpu_uuid": pl.String,
        "gpu_instance": pl.String,
        "ts": pl.Datetime("us"),
        **{name: pl.Float64 for name, _, _, _ in FAST},
        **{name: pl.Float64 for name, _, _, _ in GPM},
        "clocks_event_reasons": pl.Int64,
        "memory_used_bytes": pl.Int64,
        "is_flagged": pl.Boolean,
    },
    "gpu_samples_other": {
        "source": pl.String,
        "gpu_uuid": pl.String,
        "gpu_instance": pl.String,
        "ts": pl.Datetime("us"),
        "metric": pl.String,
        "value": pl.Float64,
    },
    "gpu_processes": {
        "source": pl.String,
        "gpu_uuid": pl.String,
        "ts": pl.Datetime("us"),
        "processes": pl.Int32,
        "pids": pl.List(pl.Int64),
    },
    "node_samples": {
        "source": pl.String,
        "node": pl.String,
        "ts": pl.Datetime("us"),
        "cpu_busy_s": pl.Float64,
        "cpu_total_s": pl.Float64,
        "load1": pl.Float64,
        "memory_total_bytes": pl.Int64,
        "memory_available_bytes": pl.Int64,
        "page_cache_bytes": pl.Int64,
        "dirty_bytes": pl.Int64,
        "disk_read_bytes": pl.Int64,
        "disk_write_bytes": pl.Int64,
    },
}
GPUS_MAX = 1024
KIND = re.compile(rb'"kind"\s*:\s*"(?:meta|fast|slow|host|clock)"')


@dataclass
class _Tables:
    """Rows of one part, by table, and what was set aside."""

    rows: dict[str, list[tuple[Any, ...]]] = field(
        default_factory=lambda: {table: [] for table in SCHEMAS}
    )
    rejects: list[Reject] = field(default_factory=list)


class NvmlRecording:
    """A recording of one node's GPUs through NVML."""

    name: ClassVar[str] = "nvml"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and the cluster that its node belongs to."""
        self.path = path
        self.options = options
        self._node: str | None = None
        self._uuids: dict[int, str] = {}

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines are objects, some of the recorder's kinds."""
        return json_lines.are_most(head) and _has_reading(head)

    def extract(self) -> Iterator[Batch]:
        """Yield samples, processes, the node's own figures and the GPUs, part by part."""
        head = files.head(self.path)
        if head.strip() and not _has_reading(head):
            raise IngestError(
                f"{self.path}: this is no NVML recording; expected JSON lines with a kind "
                "(meta, fast, slow, host) and a time t."
            )
        for part in files.parts(self.path):
            meaning = (self.options.cluster, self._node, sorted(self._uuids.items()))
            tables = self._read(part)
            for table, schema in SCHEMAS.items():
                carries_rejects = table == "gpu_samples"
                if tables.rows[table] or carries_rejects:
                    yield Batch(
                        table,
                        pl.DataFrame(tables.rows[table], schema=schema, orient="row"),
                        self.name,
                        str(self.path),
                        files.digest(part, table, *meaning),
                        tables.rejects if carries_rejects else (),
                    )

    def _read(self, part: files.Part) -> _Tables:
        tables = _Tables()
        for number, line in enumerate(part.lines, part.first_line):
            if not line.strip():
                continue
            try:
                self._add(json_lines.record(line), tables)
            except FieldError as error:
                content = json_lines.printable(line, 500)
                tables.rejects.append(Reject(number, str(error), content))
        if part.damage:
            tables.rejects.append(Reject(part.first_line + len(part.lines), part.damage))
        return tables

    def _add(self, line: dict[str, Any], tables: _Tables) -> None:
        kind = json_lines.text(line, "kind", 50)
        if kind in WITHOUT_ROWS:
            return
        if kind not in ("meta", "fast", "slow", "host"):
            raise FieldError("kind is missing" if kind is None else f"unknown kind {kind!r}")
        ts = json_lines.moment(line, "t")
        if kind == "meta":
            tables.rows["gpus"] += self._gpus(line, ts)
        elif kind == "host":
            tables.rows["node_samples"].append(self._node_sample(line, ts))
        elif kind == "fast":
            tables.rows["gpu_samples"].append(self._sample(line, ts))
        else:
            gpu_uuid = self._uuid(line)
            processes = _processes(line)
            others = _others(line)
            tables.rows["gpu_samples_other"] += [
                (self.name, gpu_uuid, "", ts, metric, value) for metric, value in others
            ]
            if processes is not None:
                tables.rows["gpu_processes"].append(
                    (self.name, gpu_uuid, ts, len(processes), processes)
                )

    def _gpus(self, line: dict[str, Any], ts: datetime) -> list[tuple[Any, ...]]:
        """Return the GPUs that a meta line names; from here on, indices mean these."""
        node = json_lines.text(line, "host", 255)
        gpus = line.get("gpus")
        if not node:
            raise FieldError("host is missing")
        if not isinstance(gpus, list) or not all(isinstance(g, dict) for g in gpus):
            raise FieldError("gpus is no list of objects")
        rows: list[tuple[Any, ...]] = []
        uuids: dict[int, str] = {}
        for gpu in gpus[:GPUS_MAX]:
            index = json_lines.whole(gpu, "index", 0, GPUS_MAX)
            uuid = json_lines.text(gpu, "uuid", 100)
            if index is None or not uuid:
                raise FieldError("a GPU has no index or no uuid")
            power_limit_mw = json_lines.number(gpu, "power_limit_mw", 0)
            sm_clock_max_mhz = json_lines.number(gpu, "sm_clock_max_mhz", 0)
            uuids[index] = uuid
            rows.append(
                (
                    self.name,
                    self.options.cluster,
                    uuid,
                    node,
                    index,
                    json_lines.whole(gpu, "minor", 0, GPUS_MAX),
                    pci_bus_id(json_lines.text(gpu, "pci_bus_id", 32)),
                    json_lines.text(gpu, "name"),
                    json_lines.whole(gpu, "mem_total", 0),
                    None if power_limit_mw is None else _scaled(power_limit_mw, MILLI),
                    None if sm_clock_max_mhz is None else sm_clock_max_mhz * MEGA,
                    json_lines.number(gpu, "temp_slowdown_c"),
                    json_lines.text(line, "driver"),
                    ts,
                )
            )
        self._node, self._uuids = node, uuids
        return rows

    def _uuid(self, line: dict[str, Any]) -> str:
        index = json_lines.whole(line, "gpu", 0)
        if index is None:
            raise FieldError("gpu is missing")
        if index not in self._uuids:
            raise FieldError(f"no meta line before this one names GPU {index}")
        return self._uuids[index]

    def _sample(self, line: dict[str, Any], ts: datetime) -> tuple[Any, ...]:
        gpu_uuid = self._uuid(line)
        flags: list[bool] = []
        plain = [_value(line, name, scale, high, flags) for _, name, scale, high in FAST]
        gpm = line.get("gpm")
        if gpm is None:  # not measured: before Hopper there is no GPM
            shares: list[float | None] = [None] * len(GPM)
        elif not isinstance(gpm, dict) or not _is_whole_gpm(gpm):
            shares = [None] * len(GPM)
            flags.append(True)
        else:
            shares = [_value(gpm, name, scale, high, flags) for _, name, scale, high in GPM]
        by_name = dict(zip((name for name, _, _, _ in (*FAST, *GPM)), plain + shares, strict=True))
        if by_name["memory_temperature_c"] == 0:  # boards without the sensor say 0
            by_name["memory_temperature_c"] = None
        for name in ("clocks_event_reasons", "memory_used_bytes"):
            whole = by_name[name]
            by_name[name] = None if whole is None else int(whole)
        return (self.name, gpu_uuid, "", ts, *by_name.values(), any(flags))

    def _node_sample(self, line: dict[str, Any], ts: datetime) -> tuple[Any, ...]:
        if self._node is None:
            raise FieldError("no meta line before this one names the node")
        busy_s, total_s = _cpu_seconds(line.get("cpu_jiffies"))
        return (
            self.name,
            self._node,
            ts,
            busy_s,
            total_s,
            json_lines.number(line, "load1", 0),
            *(
                None if (value := json_lines.whole(line, name, 0, 2**50)) is None else value * scale
                for name, scale in (
                    ("memtotal_kb", KIB),
                    ("memavailable_kb", KIB),
                    ("cached_kb", KIB),
                    ("dirty_kb", KIB),
                    ("disk_read_sectors", SECTOR),
                    ("disk_write_sectors", SECTOR),
                )
            ),
        )


def _has_reading(head: bytes) -> bool:
    return any(KIND.search(line) and b'"t"' in line for line in json_lines.objects(head))


def _value(
    line: dict[str, Any], name: str, scale: float, high: float, flags: list[bool]
) -> float | None:
    """Return a reading in base units; one that cannot be is null and flags the sample."""
    value = line.get(name)
    if value is None:
        return None
    low = TEMPERATURE_MIN_C if name.endswith("temp_c") else 0
    if isinstance(value, bool) or not isinstance(value, int | float):
        flags.append(True)
        return None
    scaled = _scaled(value, scale) if value < COUNTER_MAX else high * 2
    if not low <= scaled <= high:  # NaN fails as well
        flags.append(True)
        return None
    return min(scaled, 1.0) if high == RATIO_MAX else scaled


def _scaled(value: float, scale: float) -> float:
    """Return value * scale, rounded as a person would write it: 78.3 W, not 78.30000000000001."""
    return value * scale if scale >= 1 else value / round(1 / scale)


def _is_whole_gpm(gpm: dict[str, Any]) -> bool:
    """Say whether no share is missing: one in ten readings comes as zeros without a DRAM share."""
    given = [gpm.get(name) for name in {*SHARES, *(n for n in gpm if n.endswith("_pct"))}]
    return all(isinstance(share, int | float) and share == share for share in given)  # noqa: PLR0124 -- NaN is not itself


def _others(line: dict[str, Any]) -> list[tuple[str, float]]:
    """Return what else a slow line measures: canonical metric and value."""
    found: list[tuple[str, float]] = []
    for metric, name, scale in SLOW:
        value = json_lines.number(line, name, 0, COUNTER_MAX)
        if value is not None:
            found.append((metric, _scaled(value, scale)))
    remapped = line.get("remapped_rows")
    if isinstance(remapped, list) and len(remapped) == len(REMAPPED):
        for metric, value in zip(REMAPPED, remapped, strict=True):
            if (rows := json_lines.number({metric: value}, metric, 0)) is not None:
                found.append((metric, rows))
    links = line.get("links")
    if isinstance(links, dict):
        for metric, name, scale in LINKS:
            per_link = links.get(name)
            if isinstance(per_link, list) and per_link:
                values = [json_lines.number({name: v}, name, 0, COUNTER_MAX) for v in per_link]
                known = [value for value in values if value is not None]
                if len(known) == len(values):  # a sum over some of the links would be too low
                    found.append((metric, sum(known) * scale))
    return found


def _processes(line: dict[str, Any]) -> list[int] | None:
    """Return the pids that hold a context; None where the line does not say."""
    procs = line.get("procs")
    if procs is None:
        return None
    if not isinstance(procs, list):
        raise FieldError("procs is no list")
    pids: list[int] = []
    for proc in procs[:PIDS_MAX]:
        first = proc[0] if isinstance(proc, list) and proc else proc
        pid = json_lines.whole({"pid": first}, "pid", 0, 2**32)
        if pid is None:
            raise FieldError("a process has no pid")
        pids.append(pid)
    return pids


def _cpu_seconds(jiffies: object) -> tuple[float | None, float | None]:
    """Return busy and total seconds over all cores since boot."""
    if not isinstance(jiffies, dict):
        return None, None
    by_state = {
        state: json_lines.number(jiffies, state, 0, COUNTER_MAX)
        for state in jiffies
        if state not in GUEST_JIFFIES
    }
    known = [value for value in by_state.values() if value is not None]
    if not known or len(known) < len(by_state) or "idle" not in by_state:
        return None, None
    total = sum(known)
    idle = sum(by_state.get(state) or 0 for state in IDLE_JIFFIES)
    return _scaled(total - idle, JIFFY_S), _scaled(total, JIFFY_S)

"""From lines of an NVML recording to rows of the raw tables, whether read from a file or live.

A line has a `kind` and a time `t`: `meta` names the node and its GPUs, `fast` is a reading of a GPU
(or, with `gi`, of a MIG instance) with GPM shares in percent, `slow` has counters and processes,
`process` says what one of these is (`t`: when it was seen last, `gone`: when it no longer was),
`event` is an Xid or a GPU that no longer answers, `host` is the node itself, `clock` pairs the wall
clock with a steady one. A line refers to a GPU by its index, which the last `meta` line turns into
a UUID.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.formats.pci import pci_bus_id
from goodput_ingest.processes.command_line import COMMAND_MAX_CHARS
from goodput_ingest.source import Batch, Reject
from goodput_ingest.sources.nvml import fields
from goodput_ingest.sources.nvml.columns import (
    FAST,
    GPM,
    HOST,
    MEGA,
    MILLI,
    SCHEMAS,
    SERIES,
    WHOLE_COLUMNS,
)

SOURCE = "nvml"
KINDS = ("meta", "fast", "slow", "event", "process", "host", "clock", "end")
GPUS_MAX = 1024
INCOMPLETE_GPM = "gpm"  # a share of it is missing, and so all are
INSTANCES_MAX = 64
XID_MAX = 99_999
CLOCK_STEP_S = 1.0  # more between two clock lines is a clock that was set, not one that drifts
OFF_THE_BUS_XID = 79  # NVML_ERROR_GPU_IS_LOST: "has fallen off the bus or become inaccessible"
LOST = {
    "lost": ("off_the_bus", OFF_THE_BUS_XID),
    "reset": ("reset_required", None),
    "silent": ("unresponsive", None),
}


@dataclass(frozen=True)
class _Gpu:
    """A GPU in the last meta line; `instances`: id -> profile, slices, start."""

    uuid: str
    pci_bus_id: str | None
    instances: dict[str, tuple[str, int, datetime]]


@dataclass
class _Tables:
    """Rows of one part, by table, and the rejects."""

    rows: dict[str, list[tuple[Any, ...]]] = field(
        default_factory=lambda: {table: [] for table in SCHEMAS}
    )
    rejects: list[Reject] = field(default_factory=list)
    jobs: dict[tuple[str, str], list[datetime]] = field(default_factory=dict)  # by GPU and job id


class NvmlRows:
    """Reads lines in their order and keeps the content of the last meta line."""

    def __init__(self, cluster: str | None, origin: str) -> None:
        """Take the cluster of the node (None: not known) and where the lines come from."""
        self.cluster = cluster
        self.origin = origin
        self._node: str | None = None
        self._gpus: dict[int, _Gpu] = {}
        self._clock_offset_s: float | None = None
        self._jobs: dict[int, str] = {}  # Slurm job ids by pid

    def batches(self, part: files.Part) -> Iterator[Batch]:
        """Yield the rows of some consecutive lines, a batch a table; rejects ride on samples."""
        uuids = sorted((index, gpu.uuid) for index, gpu in self._gpus.items())
        meaning = (self.cluster, self._node, uuids)
        tables = self._read(part)
        for table, schema in SCHEMAS.items():
            carries_rejects = table == "gpu_samples"
            if tables.rows[table] or carries_rejects:
                rows = pl.DataFrame(tables.rows[table], schema=schema, orient="row")
                if carries_rejects:
                    rows = rows.sort(SERIES, maintain_order=True)
                yield Batch(
                    table,
                    rows,
                    SOURCE,
                    self.origin,
                    files.digest(part, table, *meaning),
                    tables.rejects if carries_rejects else (),
                )

    def _read(self, part: files.Part) -> _Tables:
        tables = _Tables()
        tables.rejects += json_lines.each_line(
            part, lambda line: self._add(json_lines.record(line), tables)
        )
        tables.rows["gpu_owners"] += [
            (SOURCE, self.cluster, uuid, "", "hpc_job", job, "", None, None, min(seen), max(seen))
            for (uuid, job), seen in tables.jobs.items()
        ]
        return tables

    def _add(self, line: dict[str, Any], tables: _Tables) -> None:
        kind = json_lines.text(line, "kind", 50)
        if kind not in KINDS:
            raise FieldError("kind is missing" if kind is None else f"unknown kind {kind!r}")
        if kind == "end":
            return
        ts = json_lines.moment(line, "t")
        if kind == "meta":
            self._meta(line, ts, tables)
        elif kind == "clock":
            self._check_clock(line)
        elif kind == "host":
            tables.rows["node_samples"].append(self._node_sample(line, ts))
        elif kind == "event":
            tables.rows["gpu_events"].append(self._event(line, ts))
        elif kind == "process":
            tables.rows["processes"].append(self._process(line, ts))
        elif kind == "fast":
            tables.rows["gpu_samples"].append(self._sample(line, ts))
        else:
            self._slow(line, ts, tables)

    def _meta(self, line: dict[str, Any], ts: datetime, tables: _Tables) -> None:
        """Add the GPUs that a meta line names; from here on, indices mean these."""
        node = json_lines.text(line, "host", 255)
        gpus = line.get("gpus")
        if not node:
            raise FieldError("host is missing")
        if not isinstance(gpus, list) or not all(isinstance(g, dict) for g in gpus):
            raise FieldError("gpus is not a list of objects")
        rows: list[tuple[Any, ...]] = []
        known: dict[int, _Gpu] = {}
        before = {gpu.uuid: gpu.instances for gpu in self._gpus.values()}
        cuts: list[tuple[Any, ...]] = []
        for gpu in gpus[:GPUS_MAX]:
            index = json_lines.whole(gpu, "index", 0, GPUS_MAX)
            uuid = json_lines.text(gpu, "uuid", 100)
            if index is None or not uuid:
                raise FieldError("a GPU has no index or no uuid")
            pci = pci_bus_id(json_lines.text(gpu, "pci_bus_id", 32))
            power_limit_mw = json_lines.number(gpu, "power_limit_mw", 0)
            sm_clock_max_mhz = json_lines.number(gpu, "sm_clock_max_mhz", 0)
            rows.append(
                (
                    SOURCE,
                    self.cluster,
                    uuid,
                    node,
                    index,
                    json_lines.whole(gpu, "minor", 0, GPUS_MAX),
                    pci,
                    json_lines.text(gpu, "name"),
                    json_lines.whole(gpu, "mem_total", 0),
                    None if power_limit_mw is None else fields.scaled(power_limit_mw, MILLI),
                    None if sm_clock_max_mhz is None else sm_clock_max_mhz * MEGA,
                    json_lines.number(gpu, "temp_slowdown_c"),
                    json_lines.text(line, "driver"),
                    json_lines.text(gpu, "vbios"),
                    ts,
                )
            )
            instances = _instances(gpu, ts, before.get(uuid, {}))
            cuts += self._cuts(uuid, instances, before.get(uuid, {}), ts)
            known[index] = _Gpu(uuid, pci, instances)
        self._node, self._gpus, self._clock_offset_s = node, known, None
        tables.rows["gpus"] += rows
        tables.rows["gpu_instances"] += cuts

    def _cuts(
        self,
        uuid: str,
        instances: dict[str, tuple[str, int, datetime]],
        before: dict[str, tuple[str, int, datetime]],
        ts: datetime,
    ) -> list[tuple[Any, ...]]:
        """Return the instances of a GPU, and those that are no longer, with their end."""
        ended = {gi: cut for gi, cut in before.items() if instances.get(gi) != cut}
        return [
            (SOURCE, self.cluster, uuid, gi, profile, slices, since, until)
            for cuts, until in ((ended, ts), (instances, None))
            for gi, (profile, slices, since) in cuts.items()
        ]

    def _check_clock(self, line: dict[str, Any]) -> None:
        """Ignore a clock line where the node's clock was set since the previous one."""
        wall_s, steady_s = json_lines.number(line, "t", 0), json_lines.number(line, "mono", 0)
        if wall_s is None or steady_s is None:
            return
        before, self._clock_offset_s = self._clock_offset_s, wall_s - steady_s
        if before is not None and abs(step_s := wall_s - steady_s - before) > CLOCK_STEP_S:
            raise FieldError(
                f"the node's clock was set by {step_s:+.1f} s: times before it are off by that much"
            )

    def _gpu(self, line: dict[str, Any]) -> _Gpu:
        index = json_lines.whole(line, "gpu", 0)
        if index is None:
            raise FieldError("gpu is missing")
        if index not in self._gpus:
            raise FieldError(f"no meta line before this one names GPU {index}")
        return self._gpus[index]

    def _sample(self, line: dict[str, Any], ts: datetime) -> tuple[Any, ...]:
        gpu = self._gpu(line)
        gi = json_lines.whole(line, "gi", 0, INSTANCES_MAX)
        flags: list[str] = []
        plain = [fields.value(line, name, column, flags) for name, column in FAST.items()]
        gpm = line.get("gpm")
        if gpm is None:  # not measured: before Hopper there is no GPM
            shares: list[float | None] = [None] * len(GPM)
        elif not isinstance(gpm, dict) or not fields.is_whole_gpm(gpm, line.get("gpm_without")):
            shares = [None] * len(GPM)
            flags.append(INCOMPLETE_GPM)
        else:
            shares = [fields.value(gpm, name, column, flags) for name, column in GPM.items()]
        by_name = dict(zip((*FAST.values(), *GPM.values()), plain + shares, strict=True))
        if by_name["memory_temperature_c"] == 0:  # boards without the sensor say 0
            by_name["memory_temperature_c"] = None
        for name in WHOLE_COLUMNS:
            whole = by_name[name]
            by_name[name] = None if whole is None else int(whole)
        instance = "" if gi is None else str(gi)
        flagged = ",".join(flags) or None
        return SOURCE, gpu.uuid, instance, ts, *by_name.values(), bool(flags), flagged

    def _slow(self, line: dict[str, Any], ts: datetime, tables: _Tables) -> None:
        gpu = self._gpu(line)
        pids = fields.pids(line)
        others = fields.other_metrics(line)
        tables.rows["gpu_samples_other"] += [
            (SOURCE, gpu.uuid, "", ts, metric, value) for metric, value in others
        ]
        if pids is not None:
            tables.rows["gpu_processes"].append((SOURCE, gpu.uuid, ts, len(pids), pids))
        if not gpu.instances:  # on which of them a process is, the list does not say
            for job in {self._jobs[pid] for pid in pids or () if pid in self._jobs}:
                tables.jobs.setdefault((gpu.uuid, job), []).append(ts)

    def _process(self, line: dict[str, Any], ts: datetime) -> tuple[Any, ...]:
        if self._node is None:
            raise FieldError("no meta line before this one names the node")
        pid = json_lines.whole(line, "pid", 1, 2**32)
        if pid is None:
            raise FieldError("pid is missing")
        start, job = json_lines.moment(line, "start"), json_lines.text(line, "job", 50)
        gone = json_lines.moment(line, "gone") if "gone" in line else None
        self._jobs.pop(pid, None)
        if job and gone is None:
            self._jobs[pid] = job
        name = json_lines.text(line, "name")
        command = json_lines.text(line, "command", COMMAND_MAX_CHARS)
        cgroup = (job, json_lines.text(line, "pod"), json_lines.text(line, "container"))
        user = json_lines.text(line, "user")
        where = (SOURCE, self.cluster, self._node, pid, start)
        return (*where, user, name, command, *cgroup, ts, gone)

    def _event(self, line: dict[str, Any], ts: datetime) -> tuple[Any, ...]:
        """Return an Xid or a loss; both were seen at the next reading, so happened at or before."""
        gpu = self._gpu(line)
        what = json_lines.text(line, "event", 50)
        if what == "xid":
            kind, code = "xid", json_lines.whole(line, "xid", 0, XID_MAX)
            if code is None:
                raise FieldError("xid is missing")
            said = f"NVML event: Xid {code}"
        elif what in LOST:
            kind, code = LOST[what]
            said = f"NVML: {json_lines.text(line, 'reason', 300) or what}"
        else:
            raise FieldError("event is missing" if what is None else f"unknown event {what!r}")
        where = (SOURCE, self.cluster, self._node, gpu.uuid, gpu.pci_bus_id)
        return (*where, ts, "at_or_before", kind, code, said)

    def _node_sample(self, line: dict[str, Any], ts: datetime) -> tuple[Any, ...]:
        if self._node is None:
            raise FieldError("no meta line before this one names the node")
        cpu_s = fields.cpu_seconds(line.get("cpu_jiffies"))
        figures = [
            None if (value := json_lines.whole(line, name, 0, 2**50)) is None else value * scale
            for name, scale in HOST
        ]
        load1 = json_lines.number(line, "load1", 0)
        return (SOURCE, self._node, ts, *cpu_s, load1, *figures)


def _instances(
    gpu: dict[str, Any], ts: datetime, before: dict[str, tuple[str, int, datetime]]
) -> dict[str, tuple[str, int, datetime]]:
    """Return the MIG instances of a GPU; one that was there before keeps its beginning."""
    instances = gpu.get("instances") or []
    if not isinstance(instances, list) or not all(isinstance(i, dict) for i in instances):
        raise FieldError("instances is not a list of objects")
    found: dict[str, tuple[str, int, datetime]] = {}
    for instance in instances[:INSTANCES_MAX]:
        gi = json_lines.whole(instance, "gi", 0, INSTANCES_MAX)
        profile = json_lines.text(instance, "profile", 50)
        slices = json_lines.whole(instance, "slices", 1, 7)
        if gi is None or not profile or slices is None:
            raise FieldError("a MIG instance has no gi, no profile or no slices")
        old = before.get(str(gi))
        is_same = old is not None and old[:2] == (profile, slices)
        found[str(gi)] = (profile, slices, old[2] if old and is_same else ts)
    return found

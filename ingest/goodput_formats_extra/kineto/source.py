"""PyTorch profiler (Kineto) traces: the NCCL kernels of one rank, and what of them was exposed.

A trace is one JSON document of up to some hundred megabytes; of its events only GPU kernels are
kept. Times are microseconds after `baseTimeNanoseconds`; older traces have no base and whole times.
"""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from goodput_ingest.formats import files, raw_tables
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import EPOCH, EPOCH_S_MAX, FieldError
from goodput_ingest.source import Batch, ReadOptions, RecordedFile, Reject
from goodput_ingest.sources.pytorch.flight_recorder import DTYPE_BYTES
from goodput_queries.errors import IngestError

TRACE_MAX_BYTES = 1024 * 1024 * 1024  # parsed it takes some five times as much memory
DURATION_MAX_US = 86_400e6
INT32_MAX = 2**31 - 1
TEXT_MAX_CHARS = 255
NCCL_KERNEL = re.compile(r"^nccl(?:Dev)?Kernel|^ncclKernel", re.IGNORECASE)
SCHEMA = raw_tables.columns("profiled_collectives")


@dataclass(frozen=True)
class Kernel:
    """A kernel on a GPU; times in microseconds as the trace has them."""

    name: str
    device: int
    stream: int
    start_us: float
    length_us: float
    args: dict[str, Any]

    @property
    def stop_us(self) -> float:
        """Return when it ended."""
        return self.start_us + self.length_us


class Kineto(RecordedFile):
    """The trace of one rank."""

    name: ClassVar[str] = "kineto"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and its cluster."""
        super().__init__(path, options)
        self.unread = ""  # why there are no rows

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether this is a document with Kineto's first keys."""
        start = head.lstrip()[:4096]
        return (
            start.startswith(b"{")
            and b'"schemaVersion"' in start
            and (b'"deviceProperties"' in start or b'"traceEvents"' in head)
        )

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.profiled_collectives`; kernels that cannot be read are rejects."""
        trace, digest = self._document()
        rejects: list[Reject] = []
        kernels = list(_kernels(trace, rejects))
        self.unread = "" if any(NCCL_KERNEL.match(k.name) for k in kernels) else _lack(kernels)
        try:
            about = _about(trace, digest)
            base_us = (json_lines.whole(trace, "baseTimeNanoseconds", 0) or 0) / 1000
        except FieldError as error:
            raise IngestError(f"{self.path}: this is not a trace of Kineto: {error}.") from error
        del trace
        exposed_us = _exposed(kernels)
        rows: list[tuple[Any, ...]] = []
        places: Counter[str | None] = Counter()
        for kernel in sorted(kernels, key=lambda k: k.start_us):
            if not NCCL_KERNEL.match(kernel.name):
                continue
            try:
                start_at, fields = _moment(base_us + kernel.start_us), _fields(kernel)
            except FieldError as error:
                rejects.append(Reject(None, str(error), json_lines.printable(kernel.name, 200)))
                continue
            group = fields[1]
            head, tail = fields[:5], fields[5:]
            rows.append(
                (
                    *(self.name, self.options.cluster, *about, kernel.device, kernel.stream),
                    *(start_at, kernel.length_us / 1e6),
                    *(exposed_us[id(kernel)] / 1e6, kernel.name),
                    *(*head, places[group], *tail),
                )
            )
            places[group] += 1
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        key = hashlib.sha256(f"{digest}{self.options.cluster}".encode()).hexdigest()
        yield Batch(
            "profiled_collectives", frame, self.name, str(self.path),
            key[: files.DIGEST_CHARS], rejects,
        )  # fmt: skip

    def _document(self) -> tuple[dict[str, Any], str]:
        """Return the trace and its digest; raises IngestError where it is cut or too large."""
        try:
            with files.open_bytes(self.path) as file:
                content = file.read(TRACE_MAX_BYTES + 1)
        except files.BROKEN_OFF as error:
            raise IngestError(f"{self.path}: the file is cut or damaged: {error}.") from error
        if len(content) > TRACE_MAX_BYTES:
            raise IngestError(
                f"{self.path}: larger than {TRACE_MAX_BYTES >> 30} GiB. Record fewer steps, "
                "or without shapes and stacks."
            )
        try:
            trace = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise IngestError(
                f"{self.path}: the trace is cut or not JSON ({str(error)[:100]})."
            ) from error
        if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
            raise IngestError(f"{self.path}: this is not a trace: it has no list of traceEvents.")
        return trace, hashlib.sha256(content).hexdigest()


def _lack(kernels: list[Kernel]) -> str:
    """Return what a trace without kernels of NCCL lacks."""
    if not kernels:
        return (
            ": the trace has no kernels of GPUs; record it with "
            "`activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`"
        )
    return ": none of the trace's kernels is of NCCL; a job of one GPU has none"


def _kernels(trace: dict[str, Any], rejects: list[Reject]) -> Iterator[Kernel]:
    for number, event in enumerate(trace["traceEvents"], 1):
        if not isinstance(event, dict) or event.get("cat") != "kernel" or event.get("ph") != "X":
            continue
        try:
            name = json_lines.text(event, "name", TEXT_MAX_CHARS)
            start_us = json_lines.number(event, "ts", 0)
            length_us = json_lines.number(event, "dur", 0, DURATION_MAX_US)
            device = json_lines.whole(event, "pid", 0, INT32_MAX)
            stream = json_lines.whole(event, "tid", 0)
            if name is None or start_us is None or length_us is None:
                raise FieldError("a kernel lacks name, ts or dur")
            if device is None or stream is None:
                raise FieldError("a kernel lacks pid (device) or tid (stream)")
            args = event.get("args", {})
            if not isinstance(args, dict):
                raise FieldError("args is not an object")
        except FieldError as error:
            shown = json_lines.printable(repr(event)[:500], 500)
            rejects.append(Reject(None, f"event {number}: {error}", shown))
            continue
        yield Kernel(name, device, stream, start_us, length_us, args)


def _about(trace: dict[str, Any], digest: str) -> tuple[str, int | None, int | None, int | None]:
    """Return trace id, rank, world size and process of a trace."""
    said = trace.get("distributedInfo", {})
    if not isinstance(said, dict):
        raise FieldError("distributedInfo is not an object")
    host_events = (
        e for e in trace["traceEvents"] if isinstance(e, dict) and e.get("cat") == "cpu_op"
    )
    process = next((e.get("pid") for e in host_events), None)
    return (
        json_lines.text(trace, "trace_id", TEXT_MAX_CHARS) or digest[:32],
        json_lines.whole(said, "rank", 0, INT32_MAX),
        json_lines.whole(said, "world_size", 0, INT32_MAX),
        process if isinstance(process, int) and not isinstance(process, bool) else None,
    )


def _fields(kernel: Kernel) -> tuple[Any, ...]:
    """Return a kernel's columns from operation on, without its place in the group."""
    args = kernel.args
    group = args.get("Process Group Name")
    dtype = json_lines.text(args, "dtype", 50)
    elements = [json_lines.whole(args, f"{side} msg nelems", 0, 2**58) for side in ("In", "Out")]
    width = DTYPE_BYTES.get(dtype or "")
    known = [count for count in elements if count is not None]
    return (
        json_lines.text(args, "Collective name", 100),
        json_lines.printable(str(group), TEXT_MAX_CHARS) if group not in (None, "") else None,
        json_lines.text(args, "Process Group Description", TEXT_MAX_CHARS),
        json_lines.whole(args, "Group size", 0, INT32_MAX),
        json_lines.whole(args, "Seq", 0),
        dtype,
        *elements,
        max(known) * width if known and width else None,
    )


def _exposed(kernels: list[Kernel]) -> dict[int, float]:
    """Return for each NCCL kernel the microseconds in which no other kind of kernel ran.

    The other kernels of a device are made one union of spans; what a span hides of a kernel is the
    difference of the union's length up to both of its ends.
    """
    others: dict[int, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        if not NCCL_KERNEL.match(kernel.name):
            others[kernel.device].append(kernel)
    covered = {device: _Covered(found) for device, found in others.items()}
    nothing = _Covered([])
    exposed: dict[int, float] = {}
    for kernel in kernels:
        if NCCL_KERNEL.match(kernel.name):
            union = covered.get(kernel.device, nothing)
            hidden = union.until(kernel.stop_us) - union.until(kernel.start_us)
            exposed[id(kernel)] = max(0.0, round(kernel.length_us - hidden, 3))  # as exact as ts
    return exposed


class _Covered:
    """The union of kernels' spans on a device, and its length up to any moment."""

    def __init__(self, kernels: list[Kernel]) -> None:
        spans = sorted((kernel.start_us, kernel.stop_us) for kernel in kernels)
        merged: list[list[float]] = []
        for start, stop in spans:
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], stop)
            else:
                merged.append([start, stop])
        self.starts = np.array([start for start, _ in merged])
        self.stops = np.array([stop for _, stop in merged])
        self.before = np.concatenate([[0.0], np.cumsum(self.stops - self.starts)])

    def until(self, moment_us: float) -> float:
        """Return the length of the union before a moment."""
        whole = int(np.searchsorted(self.stops, moment_us, side="right"))
        inside = whole < len(self.starts) and self.starts[whole] < moment_us
        return float(self.before[whole] + (moment_us - self.starts[whole] if inside else 0.0))


def _moment(since_epoch_us: float) -> datetime:
    if not 0 <= since_epoch_us < EPOCH_S_MAX * 1e6:
        raise FieldError("the kernel's time is out of range for microseconds since 1970")
    return EPOCH + timedelta(microseconds=round(since_epoch_us))

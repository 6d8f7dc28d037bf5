"""Job events v1: what a job says of itself, one JSON object a line (our own schema).

{"v":1,"ts":1787234549.0,"event":"step","step":401,"dur_s":10.02,"run_id":"run7","rank":0}
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from goodput_ingest import files, json_lines
from goodput_ingest.json_lines import FieldError
from goodput_ingest.source import Batch, ReadOptions, Reject
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DURATION_MAX_S = (
    31 * 86_400
)  # nothing inside a job takes longer; milliseconds in the seconds' place do

VERSION = 1
EVENTS = (
    "job.start",
    "job.end",
    "step.start",
    "step",
    "phase",
    "phase.start",
    "phase.end",
    "ckpt.durable",
    "failure",
    "metric",
)
NEEDS = {  # what an event says nothing without
    "step": "step",
    "step.start": "step",
    "ckpt.durable": "step",
    "phase": "phase",
    "phase.start": "phase",
    "phase.end": "phase",
}
INT32_MAX = 2**31 - 1
MSG_MAX_CHARS = 2000
EXTRA_MAX_CHARS = 8000
SRUN_LABEL = re.compile(r"^\s*\d+:\s*(?=\{)")  # `srun --label` writes "3: " before each line
SCHEMA: dict[str, Any] = {
    "source": pl.String,
    "cluster": pl.String,
    "run_id": pl.String,
    "attempt": pl.Int32,
    "rank": pl.Int32,
    "local_rank": pl.Int32,
    "host": pl.String,
    "pid": pl.Int64,
    "gpu_uuid": pl.String,
    "ts": pl.Datetime("us"),
    "event": pl.String,
    "step": pl.Int64,
    "dur_s": pl.Float64,
    "phase": pl.String,
    "data_s": pl.Float64,
    "comm_s": pl.Float64,
    "straggler_s": pl.Float64,
    "throttle_s": pl.Float64,
    "tokens": pl.Float64,
    "flops": pl.Float64,
    "kind": pl.String,
    "msg": pl.String,
    "reports_durability": pl.Boolean,
    "extra": pl.String,
}
NAMED = {*SCHEMA, "v"} - {"source", "cluster", "reports_durability", "extra"}


class JobEvents:
    """A file of job events v1, of one process or of several that write into one file."""

    name: ClassVar[str] = "job-events"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and the cluster it speaks of."""
        self.path = path
        self.options = options

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines are objects, some with a version, a time and an event."""
        return json_lines.are_most(head) and _has_event(head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.job_events`, part by part; broken lines and unknown events are rejects."""
        head = files.head(self.path)
        is_one_cut_line = head.lstrip().startswith(b"{") and b"\n" not in head
        if head.strip() and not is_one_cut_line and not _has_event(head):
            raise IngestError(
                f"{self.path}: no line is a job event; expected "
                '{"v": 1, "ts": ..., "event": ...}.'
            )
        for part in files.parts(self.path):
            rows: list[tuple[Any, ...]] = []
            rejects: list[Reject] = []
            for number, line in enumerate(part.lines, part.first_line):
                if not line.strip():
                    continue
                try:
                    rows.append(self._row(line))
                except FieldError as error:
                    rejects.append(Reject(number, str(error), json_lines.printable(line, 500)))
            if part.damage:
                rejects.append(Reject(part.first_line + len(part.lines), part.damage))
            yield Batch(
                "job_events",
                pl.DataFrame(rows, schema=SCHEMA, orient="row"),
                self.name,
                str(self.path),
                files.digest(part, "job_events", self.options.cluster),
                rejects,
            )

    def _row(self, line: str) -> tuple[Any, ...]:
        event = json_lines.record(SRUN_LABEL.sub("", line) if line[0] != "{" else line)
        version = event.get("v")
        if isinstance(version, bool) or version != VERSION:
            shown = json_lines.printable(repr(version), 20)
            raise FieldError(
                f"v is {shown}, expected {VERSION}" if "v" in event else "v is missing"
            )
        name = json_lines.text(event, "event", 50)
        if name not in EVENTS:
            raise FieldError("event is missing" if name is None else f"unknown event {name!r}")
        needed = NEEDS.get(name)
        if needed is not None and event.get(needed) is None:
            raise FieldError(f"{needed} is missing, an event {name!r} needs it")
        dur_s = json_lines.number(event, "dur_s", 0, DURATION_MAX_S)
        if name == "phase" and dur_s is None:
            raise FieldError("dur_s is missing, an event 'phase' needs it")
        return (
            self.name,
            self.options.cluster,
            json_lines.text(event, "run_id") or "",
            json_lines.whole(event, "attempt", 0, INT32_MAX),
            json_lines.whole(event, "rank", 0, INT32_MAX),
            json_lines.whole(event, "local_rank", 0, INT32_MAX),
            json_lines.text(event, "host", 255),
            json_lines.whole(event, "pid", 0),
            json_lines.text(event, "gpu_uuid", 100),
            json_lines.moment(event, "ts"),
            name,
            json_lines.whole(event, "step", 0),
            dur_s,
            json_lines.text(event, "phase", 100),
            json_lines.number(event, "data_s", 0, DURATION_MAX_S),
            json_lines.number(event, "comm_s", 0, DURATION_MAX_S),
            json_lines.number(event, "straggler_s", 0, DURATION_MAX_S),
            json_lines.number(event, "throttle_s", 0, DURATION_MAX_S),
            json_lines.number(event, "tokens", 0),
            json_lines.number(event, "flops", 0),
            json_lines.text(event, "kind", 100),
            json_lines.text(event, "msg", MSG_MAX_CHARS),
            True,
            _extra({k: v for k, v in event.items() if k not in NAMED}),
        )


def _has_event(head: bytes) -> bool:
    return any(
        b'"ts"' in line and b'"event"' in line and b'"v"' in line
        for line in json_lines.objects(head)
    )


def _extra(unknown: dict[str, Any]) -> str | None:
    """Return fields that the schema does not name, as JSON; too many are cut, and it says so."""
    if not unknown:
        return None
    found = _json(unknown)
    if found is None or len(found) > EXTRA_MAX_CHARS:
        return _json({"cut": True, "names": sorted(name[:50] for name in unknown)[:50]})
    return found


def _json(value: Any) -> str | None:
    """Return strict JSON: NaN is null, a lone surrogate replaced; None where it is too deep."""
    try:
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        except ValueError:
            text = json.dumps(_without_nan(value), ensure_ascii=False)
    except RecursionError:
        return None
    return text.encode("utf-8", "replace").decode("utf-8")


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nan(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

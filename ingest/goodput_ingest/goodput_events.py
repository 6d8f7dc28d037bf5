"""Events of ml-goodput-measurement (Google): one dictionary an event, as its logger writes them.

{"job_name": "run7", "step_count": 401, "step_start_time": 1787234539.48}

Plain objects or Cloud Logging entries with the object in `jsonPayload`. Process 0 alone writes
them, so they speak for the gang and carry no rank. A step has no end of its own: it ends when the
next one starts, and the last one of a life with the job's end at the latest, which is not claimed.
Checkpoints come from Orbax, whose durations are what the training was blocked for; when a save
became durable is told of synchronous ones alone.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from goodput_ingest import event_lines, files, json_lines
from goodput_ingest.event_lines import DURATION_MAX_S, Row
from goodput_ingest.json_lines import FieldError
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from goodput_ingest.files import Part
    from goodput_ingest.source import Batch, ReadOptions

SPANS = {  # of `<name>_start_time` and `<name>_end_time`
    "tpu_init": "init",
    "training_prep": "init",
    "data_loading": "data_wait",
    "custom_badput_event": "custom:",
}
CUSTOM = {"eval_step": "eval"}
SAVES = {"save": "ckpt_save", "restore": "restore", "emergency_restore": "restore"}
BLOCKING = (
    "wait_for_prev_duration_secs",
    "checkpointer_blocking_duration_secs",
    "checkpoint_manager_blocking_duration_secs",
)
MARKS = (
    b'"job_start_time"',
    b'"job_end_time"',
    b'"step_start_time"',
    b'"tpu_init_start_time"',
    b'"training_prep_start_time"',
)
SAVE_MARKS = (b'"checkpoint_manager_blocking_start_time"', b'"checkpointer_blocking_start_time"')


class GoodputEvents:
    """A log of ml-goodput-measurement, or of Orbax's checkpoint logger beside it."""

    name: ClassVar[str] = "goodput-events"
    needs_beginning: ClassVar[bool] = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and the cluster it speaks of."""
        self.path = path
        self.options = options
        self._so_far = ""
        self.step: dict[str, tuple[int, datetime]] = {}  # by run: the step under way
        self.job_name = options.run_id or ""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines are objects, some with a job's name and the library's times."""
        return json_lines.are_most(head) and _has_event(head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.job_events`, part by part; what is no such event is a reject."""
        if not _has_event(files.head(self.path)):
            raise IngestError(
                f"{self.path}: no line has a job_name and one of the library's times."
            )
        for part in files.parts(self.path):
            yield from self.read(part)

    def read(self, part: Part) -> Iterator[Batch]:
        """Yield the events of the next lines: the first step of a part ends one before it."""
        found = event_lines.batch(
            *(part, self.path, self.name, self._told),
            *(self._so_far, self.options.cluster, self.options.run_id),
        )
        self._so_far = found.digest
        yield found

    def _told(self, record: dict[str, Any]) -> Iterator[Row]:
        said = {
            "source": self.name,
            "cluster": self.options.cluster,
            "reports_durability": False,
        }
        for row in self._rows(_payload(record)):
            yield event_lines.row(**said, **row)

    def _rows(self, said: dict[str, Any]) -> list[dict[str, Any]]:
        run_id = json_lines.text(said, "job_name") or ""
        if "event_type" in said:
            # Orbax does not know the job's name: the one that stands before it in the file
            run_id = run_id or self.job_name
            return [{"run_id": run_id, **row} for row in _checkpoint(said)]
        self.job_name = run_id
        if said.get("step_start_time") is not None:
            return self._step(run_id, said)
        if said.get("job_start_time") is not None:
            self.step.pop(run_id, None)
            at = json_lines.moment(said, "job_start_time")
            return [{"run_id": run_id, "event": "job.start", "ts": at}]
        if said.get("job_end_time") is not None:
            self.step.pop(run_id, None)
            at = json_lines.moment(said, "job_end_time")
            return [{"run_id": run_id, "event": "job.end", "ts": at}]
        for name, phase in SPANS.items():
            for side, event in (("start", "phase.start"), ("end", "phase.end")):
                if said.get(f"{name}_{side}_time") is not None:
                    kind = json_lines.text(said, "custom_badput_event_type", 80) or "other"
                    full = CUSTOM.get(kind, phase + kind) if phase == "custom:" else phase
                    at = json_lines.moment(said, f"{name}_{side}_time")
                    return [{"run_id": run_id, "event": event, "ts": at, "phase": full}]
        raise FieldError("no time that ml-goodput-measurement writes is in it")

    def _step(self, run_id: str, said: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the step that this one's start ends, unless the job went back between them."""
        number = json_lines.whole(said, "step_count", 0)
        if number is None:
            raise FieldError("step_count is missing, a step_start_time needs it")
        at = json_lines.moment(said, "step_start_time")
        before = self.step.get(run_id)
        self.step[run_id] = (number, at)
        started = {"run_id": run_id, "event": "step.start", "ts": at, "step": number}
        if before is None or number <= before[0] or not before[1] < at:
            return [started]
        length_s = (at - before[1]).total_seconds()
        if length_s > DURATION_MAX_S:
            return [started]
        done = {"event": "step", "ts": at, "step": number - 1, "dur_s": length_s}
        if number - before[0] > 1:
            done["extra"] = json.dumps({"span": f"steps {before[0]} to {number - 1}"})
        return [{"run_id": run_id, **done}, started]


def _has_event(head: bytes) -> bool:
    return any(
        (b'"job_name"' in line and any(m in line for m in MARKS))
        or (b'"event_type"' in line and any(m in line for m in SAVE_MARKS))
        for line in json_lines.objects(head)
    )


def _payload(record: dict[str, Any]) -> dict[str, Any]:
    """Return the event; Cloud Logging keeps it in `jsonPayload` (or `json_payload`)."""
    for name in ("jsonPayload", "json_payload"):
        if isinstance(inner := record.get(name), dict):
            return inner
    return record


def _checkpoint(said: dict[str, Any]) -> list[dict[str, Any]]:
    """Return Orbax's save or restore as the time the training was blocked.

    A synchronous save is durable when it unblocks; when another one is, is not told.
    """
    kind = json_lines.text(said, "event_type", 50) or ""
    phase = SAVES.get(kind)
    if phase is None:
        raise FieldError(f"event_type {kind!r} is unknown")
    if phase == "restore":
        names = ("checkpointer_duration_secs", "checkpoint_manager_duration_secs")
        lengths = [json_lines.number(said, name, 0, DURATION_MAX_S) for name in names]
        length_s = max((n for n in lengths if n is not None), default=None)
        start_names: tuple[str, ...] = ("checkpoint_manager_start_time", "checkpointer_start_time")
    else:
        blocked = [json_lines.number(said, name, 0, DURATION_MAX_S) for name in BLOCKING]
        known = [n for n in blocked if n is not None]
        # the manager's blocking time holds the checkpointer's and the wait for the save before
        length_s = blocked[2] if blocked[2] is not None else sum(known) if known else None
        start_names = (
            "checkpoint_manager_blocking_start_time",
            "wait_for_prev_start_time",
            "checkpointer_blocking_start_time",
        )
    start_name = next((name for name in start_names if said.get(name) is not None), None)
    if start_name is None or length_s is None:
        raise FieldError(f"a {kind} without a start and a duration")
    start = json_lines.moment(said, start_name)
    step = json_lines.whole(said, "step", 0)
    end = start + timedelta(seconds=length_s)
    extra = json.dumps({"orbax": kind})
    rows = [{"event": "phase", "ts": end, "phase": phase, "dur_s": length_s, "extra": extra}]
    if kind == "save" and said.get("synchronous") is True and step is not None:
        rows.append({"event": "ckpt.durable", "ts": end, "step": step, "extra": extra})
    return rows

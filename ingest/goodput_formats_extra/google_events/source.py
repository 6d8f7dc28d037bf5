"""Events of ml-goodput-measurement (Google): one dictionary an event, as its logger writes them.

{"job_name": "run7", "step_count": 401, "step_start_time": 1787234539.48}

Plain objects, one a line, or a Cloud Logging export (lines or one JSON array) with the object in
`jsonPayload`, in any order. Process 0 alone writes them, so they apply to the gang and carry no
rank. Each event becomes a row by itself; that a step ends when the next one starts, which load of
data blocks and what a later save proves follow from all rows together (temp/google_events.sql).
Checkpoints come from Orbax, whose durations are what the training was blocked for.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from goodput_ingest.formats import files
from goodput_ingest.formats.files import Part
from goodput_ingest.formats.json_text import event_lines, json_lines
from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S, Row
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.source import Batch, ReadOptions, RecordedFile
from goodput_queries.errors import IngestError

SPANS = {  # of `<name>_start_time` and `<name>_end_time`
    "tpu_init": "init",
    "training_prep": "init",
    "data_loading": "data_wait",
    "custom_badput_event": "custom:",
    "elastic_wait": "gang_wait",  # slices wait for a replacement, or to join again
    "elastic_reinit": "init",  # compilation and sharding for another number of slices
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
JOB_NAME = re.compile(rb'"job_name"\s*:\s*("(?:[^"\\]|\\.){1,200}")')
ARRAY_MAX_BYTES = 64 * 1024 * 1024  # an array is read whole; lines have no such limit


class GoodputEvents(RecordedFile):
    """A log of ml-goodput-measurement, or of Orbax's checkpoint logger."""

    name: ClassVar[str] = "goodput-events"
    is_followed: ClassVar[bool] = True
    needs_beginning: ClassVar[bool] = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and its cluster."""
        super().__init__(path, options)
        self._so_far = ""
        self.job_name = options.run_id or ""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines are objects, some with a job's name and the library's times."""
        return (_is_array(head) or json_lines.are_most(head)) and _has_event(head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.job_events`, part by part; what is no such event is a reject."""
        head = files.head(self.path)
        if not _has_event(head):
            raise IngestError(
                f"{self.path}: no line has a job_name and one of the library's times."
            )
        for part in [_elements(self.path)] if _is_array(head) else files.parts(self.path):
            yield from self.read(part)

    def read(self, part: Part) -> Iterator[Batch]:
        """Yield the events of the next lines; Orbax's carry no job name, those before them do."""
        if not self.job_name:  # a log with the latest event first
            self.job_name = next(_job_names(part.data), "")
        found = event_lines.batch(
            *(part, self.path, self.name, self._rows_of),
            *(self._so_far, self.options.cluster, self.options.run_id),
        )
        self._so_far = found.digest
        yield found

    def _rows_of(self, record: dict[str, Any]) -> Iterator[Row]:
        fixed = {
            "source": self.name,
            "cluster": self.options.cluster,
            "reports_durability": False,
        }
        for row in self._rows(_payload(record)):
            yield event_lines.row(**fixed, **row)

    def _rows(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        run_id = json_lines.text(event, "job_name") or ""
        if "event_type" in event:
            run_id = run_id or self.job_name
            return [{"run_id": run_id, **row} for row in _checkpoint(event)]
        self.job_name = run_id
        return [{"run_id": run_id, **_row(event)}]


def _job_names(data: bytes) -> Iterator[str]:
    """Yield the names of jobs that can be read; those of damaged lines may not."""
    for found in JOB_NAME.finditer(data):
        with contextlib.suppress(ValueError):
            yield str(json.loads(found[1]))


def _row(event: dict[str, Any]) -> dict[str, Any]:
    if event.get("step_start_time") is not None:
        number = json_lines.whole(event, "step_count", 0)
        if number is None:
            raise FieldError("step_count is missing, a step_start_time needs it")
        at = json_lines.moment(event, "step_start_time")
        return {"event": "step.start", "ts": at, "step": number}
    for name in ("job.start", "job.end"):
        field = f"{name.replace('.', '_')}_time"
        if event.get(field) is not None:
            return {"event": name, "ts": json_lines.moment(event, field)}
    for name, phase in SPANS.items():
        for side in ("start", "end"):
            field = f"{name}_{side}_time"
            if event.get(field) is not None:
                kind = json_lines.text(event, "custom_badput_event_type", 80) or "other"
                full = CUSTOM.get(kind, phase + kind) if phase == "custom:" else phase
                at = json_lines.moment(event, field)
                return {"event": f"phase.{side}", "ts": at, "phase": full}
    if event.get("elastic_slice_counts_timestamp") is not None:
        at = json_lines.moment(event, "elastic_slice_counts_timestamp")
        counts = {name: event.get(f"{name}_slices") for name in ("active", "total", "available")}
        return {"event": "metric", "ts": at, "extra": json.dumps({"slices": counts}, default=str)}
    raise FieldError("no time that ml-goodput-measurement writes is in it")


def _is_array(head: bytes) -> bool:
    return head.removeprefix(files.BYTE_ORDER_MARK).lstrip()[:1] == b"["


def _elements(path: Path) -> Part:
    """Return the elements of a JSON array as the lines of a part."""
    with files.open_bytes(path) as file:
        try:
            text = file.read(ARRAY_MAX_BYTES + 1)
            if len(text) > ARRAY_MAX_BYTES:
                raise IngestError(
                    f"{path}: a JSON array of over {ARRAY_MAX_BYTES >> 20} MiB; "
                    "write its elements one a line (jq -c '.[]')."
                )
            found = json.loads(text)
        except files.BROKEN_OFF as error:
            raise IngestError(f"{path}: the file is damaged ({error}).") from error
        except (ValueError, RecursionError) as error:
            raise IngestError(f"{path}: the JSON array cannot be read ({error}).") from error
    data = files.with_ends(json.dumps(element).encode() for element in found)
    return Part(1, data, hashlib.sha256(data).hexdigest()[: files.DIGEST_CHARS])


def _has_event(head: bytes) -> bool:
    of_array = [head] if _is_array(head) else []
    return any(
        (b'"job_name"' in line and any(m in line for m in MARKS))
        or (b'"event_type"' in line and any(m in line for m in SAVE_MARKS))
        for line in of_array or json_lines.objects(head)
    )


def _payload(record: dict[str, Any]) -> dict[str, Any]:
    """Return the event; Cloud Logging keeps it in `jsonPayload` (or `json_payload`)."""
    for name in ("jsonPayload", "json_payload"):
        if isinstance(inner := record.get(name), dict):
            return inner
    return record


def _checkpoint(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return Orbax's save or restore as the time the training was blocked.

    A synchronous save is durable when it unblocks; an asynchronous one is proven by later events.
    """
    kind = json_lines.text(event, "event_type", 50) or ""
    phase = SAVES.get(kind)
    if phase is None:
        raise FieldError(f"event_type {kind!r} is unknown")
    if phase == "restore":
        names = ("checkpointer_duration_secs", "checkpoint_manager_duration_secs")
        lengths = [json_lines.number(event, name, 0, DURATION_MAX_S) for name in names]
        length_s = max((n for n in lengths if n is not None), default=None)
        start_names: tuple[str, ...] = ("checkpoint_manager_start_time", "checkpointer_start_time")
    else:
        blocked = [json_lines.number(event, name, 0, DURATION_MAX_S) for name in BLOCKING]
        known = [n for n in blocked if n is not None]
        # the manager's blocking time holds the checkpointer's and the wait for the save before
        length_s = blocked[2] if blocked[2] is not None else sum(known) if known else None
        start_names = (
            "checkpoint_manager_blocking_start_time",
            "wait_for_prev_start_time",
            "checkpointer_blocking_start_time",
        )
    start_name = next((name for name in start_names if event.get(name) is not None), None)
    if start_name is None or length_s is None:
        raise FieldError(f"a {kind} without a start and a duration")
    start = json_lines.moment(event, start_name)
    step = json_lines.whole(event, "step", 0)
    end = start + timedelta(seconds=length_s)
    extra = json.dumps({"orbax": kind})
    saved = step if phase == "ckpt_save" else None
    rows: list[dict[str, Any]] = [
        {"event": "phase", "ts": end, "phase": phase, "dur_s": length_s, "step": saved,
         "extra": extra}
    ]  # fmt: skip
    if kind == "save" and event.get("synchronous") is True and step is not None:
        rows.append({"event": "ckpt.durable", "ts": end, "step": step, "extra": extra})
    return rows

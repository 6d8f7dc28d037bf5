"""Job events v1: what a job says of itself, one JSON object a line (our own schema).

{"v":1,"ts":1787234549.0,"event":"step","step":401,"dur_s":10.02,"run_id":"run7","rank":0}
"""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import polars as pl

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import event_lines, json_lines
from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S, EXTRA_MAX_CHARS, Row
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.source import Batch, RecordedFile
from goodput_ingest.sources.job_events import fields
from goodput_ingest.sources.job_events.bulk import events_of
from goodput_queries.errors import IngestError


class JobEvents(RecordedFile):
    """A file of job events v1, of one process or of several that write into one file."""

    name: ClassVar[str] = "job-events"
    is_followed: ClassVar[bool] = True

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
            yield event_lines.batch(
                *(part, self.path, self.name, self._rows),
                *("job_events", self.options.cluster),
                bulk=self._events,
            )

    def _events(self, part: files.Part) -> pl.DataFrame:
        return events_of(part, fields.REQUIRED, self.name, self.options.cluster)

    def _rows(self, event: dict[str, Any]) -> tuple[Row]:
        return (self._row(event),)

    def _row(self, event: dict[str, Any]) -> Row:
        version = event.get("v")
        if isinstance(version, bool) or version != fields.VERSION:
            shown = json_lines.printable(repr(version), 20)
            raise FieldError(
                f"v is {shown}, expected {fields.VERSION}" if "v" in event else "v is missing"
            )
        name = json_lines.text(event, "event", 50)
        if name not in fields.EVENTS:
            raise FieldError("event is missing" if name is None else f"unknown event {name!r}")
        needed = fields.NEEDS.get(name)
        if needed is not None and event.get(needed) is None:
            raise FieldError(f"{needed} is missing, an event {name!r} needs it")
        if name == "phase" and json_lines.number(event, "dur_s", 0, DURATION_MAX_S) is None:
            raise FieldError("dur_s is missing, an event 'phase' needs it")
        run_id, *others = [
            read(event, name, *bounds) if name in event or name == "ts" else None
            for name, read, bounds in _READERS
        ]
        more = _extra({name: value for name, value in event.items() if name not in fields.NAMED})
        return (self.name, self.options.cluster, run_id or "", *others, True, more)


def _has_event(head: bytes) -> bool:
    return any(
        b'"ts"' in line and b'"event"' in line and b'"v"' in line
        for line in json_lines.objects(head)
    )


def _loss(event: dict[str, Any], name: str) -> float | None:
    """Return the training loss, which may be NaN or infinite; None for what is no number.

    JSON has no NaN, so that some writers give numbers as text. A wrong one rejects no step.
    """
    value = event.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


_READS: Final[dict[str, tuple[Callable[..., Any], tuple[float, ...]]]] = {
    "ts": (json_lines.moment, ()),
    **{name: (json_lines.text, (most,)) for name, most in fields.TEXTS.items()},
    **{name: (json_lines.whole, (0, most)) for name, most in fields.WHOLES.items()},
    **dict.fromkeys(fields.DURATIONS, (json_lines.number, (0, DURATION_MAX_S))),
    **dict.fromkeys(fields.AMOUNTS, (json_lines.number, (0,))),
    "loss": (_loss, ()),
}
_READERS: Final = tuple((name, *_READS[name]) for name in event_lines.SCHEMA if name in _READS)


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

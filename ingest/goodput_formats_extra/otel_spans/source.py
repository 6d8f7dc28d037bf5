"""OpenTelemetry spans of Megatron-LM and of NVIDIA Resiliency Extension, as JSON lines.

{"name": "megatron.train.iteration", "start_time": "2026-08-20T14:03:07.461Z", "end_time": "...",
 "attributes": {"megatron.iteration": 120}, "resource": {"attributes": {"nemo.run.id": "7", ...}}}

Either a span a line, as the SDK's own exporter writes it, or an OTLP request a line, as the
collector's file exporter does (`resourceSpans`, moments in nanoseconds, attributes as lists). Spans
are written when they end: what was still open when a process died is not there. By default the
last rank alone exports, coarse spans only, without steps.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from goodput_ingest.formats import files
from goodput_ingest.formats.files import Part
from goodput_ingest.formats.json_text import event_lines, json_lines
from goodput_ingest.formats.json_text.event_lines import (
    DURATION_MAX_S,
    INT32_MAX,
    MSG_MAX_CHARS,
    Row,
)
from goodput_ingest.formats.json_text.json_lines import EPOCH, EPOCH_S_MAX, FieldError
from goodput_ingest.source import Batch, ReadOptions, RecordedFile
from goodput_queries.errors import IngestError

STEPS = ("megatron.train.iteration", "megatron.train_step")  # the code's name, the manual's
STARTS = ("megatron.startup.initialize_megatron",)  # once a life of a rank
DURABLE = "megatron.checkpoint.save.finalize"  # ends when the save is final
FAULT = "nvrx.restart.fault"
PHASES = {
    "megatron.checkpoint.load": "restore",
    "megatron.checkpoint.exposed_save": "ckpt_save",
    "megatron.checkpoint.save": "ckpt_save",
    DURABLE: "ckpt_save",
    "megatron.evaluate": "eval",
    "nvrx.restart.health_check": "init",
    "nvrx.restart.rendezvous": "init",
    "nvrx.restart.worker_launch": "init",
}
OURS = ("megatron.", "nvrx.")
INIT_PREFIXES = ("megatron.startup.", "workload.startup.")
MARK = re.compile(rb'"name": ?"(?:megatron|nvrx)\.')
RANK = re.compile(r"-rank(\d{1,9})$")
RUN_IDS = ("nemo.run.id", "slurm.job.id")
SPANS_MAX = 100_000  # of one line
NS_MAX = EPOCH_S_MAX * 10**9
SPAN_MARKS = (b'"resourceSpans"', b'"start_time"', b'"startTimeUnixNano"')


@dataclass(frozen=True)
class Span:
    """A span of either form; moments naive UTC, `failed` why its status is ERROR."""

    name: str
    start: datetime
    end: datetime
    attributes: dict[str, Any]
    resource: dict[str, Any]
    failed: str | None


class OtelSpans(RecordedFile):
    """A file of spans: iterations, checkpoints, evaluation, start-up and restarts."""

    name: ClassVar[str] = "otel-spans"
    is_followed: ClassVar[bool] = True
    needs_beginning: ClassVar[bool] = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file, the cluster and what the person says of the run."""
        super().__init__(path, options)
        self._so_far = ""
        self.saved_step: dict[tuple[str, int | None], int] = {}  # by run and rank: last save begun

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines are objects with spans, some of them of names we know."""
        return json_lines.are_most(head) and _has_span(head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.job_events`, part by part; broken spans are rejects, unknown ones left out."""
        if not _has_span(files.head(self.path)):
            raise IngestError(f"{self.path}: no line has a span named megatron.* or nvrx.*.")
        for part in files.parts(self.path):
            yield from self.read(part)

    def read(self, part: Part) -> Iterator[Batch]:
        """Yield the spans of the next lines: a final save is of the step begun before it."""
        found = event_lines.batch(
            *(part, self.path, self.name, self._rows_of),
            *(self._so_far, self.options.cluster, self.options.run_id),
        )
        self._so_far = found.digest
        yield found

    def _rows_of(self, record: dict[str, Any]) -> Iterator[Row | FieldError]:
        for read in _spans(record):
            try:
                yield from self._rows(read())
            except FieldError as error:
                yield error

    def _rows(self, span: Span) -> list[Row]:
        run_id = next((str(span.resource[k]) for k in RUN_IDS if span.resource.get(k)), "")
        run_id = json_lines.printable(run_id or self.options.run_id or "", 200)
        rank = _rank(span)
        said = {
            "source": self.name,
            "cluster": self.options.cluster,
            "run_id": run_id,
            "rank": rank,
            "host": json_lines.text(span.resource, "host.name", 255),
            "reports_durability": True,
            "extra": json_lines.dumped({"span": span.name[:200]}),
        }
        events = self._events(span, (run_id, rank))
        rows = [event_lines.row(**said, **event) for event in events]
        if span.failed is not None:
            failure = {"event": "failure", "ts": span.end, "kind": "exception", "msg": span.failed}
            rows.append(event_lines.row(**said, **failure))
        return rows

    def _events(self, span: Span, whose: tuple[str, int | None]) -> Iterable[dict[str, Any]]:
        """Return the job events of a span; nothing where the ledger does not use it."""
        length_s = (span.end - span.start).total_seconds()
        step = json_lines.whole(span.attributes, "megatron.iteration", 0)
        if span.name in STEPS:
            if step is None:
                raise FieldError(f"a span {span.name} without megatron.iteration")
            return ({"event": "step", "ts": span.end, "step": step, "dur_s": length_s},)
        if span.name == FAULT:
            return ({"event": "failure", "ts": span.start, "kind": "other", "msg": "NVRx fault"},)
        phase = PHASES.get(span.name)
        if phase is None and span.name.startswith(INIT_PREFIXES):
            phase = "init"
        if phase is None:
            return ()
        events = [{"event": "phase", "ts": span.end, "phase": phase, "dur_s": length_s}]
        if span.name in STARTS:
            events.append({"event": "job.start", "ts": span.start})
        if phase == "ckpt_save" and step is not None:
            self.saved_step[whose] = step
        if span.name == DURABLE and (saved := step or self.saved_step.get(whose)) is not None:
            events.append({"event": "ckpt.durable", "ts": span.end, "step": saved})
        return events


def _has_span(head: bytes) -> bool:
    return any(
        MARK.search(line) and any(mark in line for mark in SPAN_MARKS)
        for line in json_lines.objects(head)
    )


def _rank(span: Span) -> int | None:
    """Return the rank that `service.instance.id` (`<run>-rank<rank>`) names."""
    found = RANK.search(json_lines.text(span.resource, "service.instance.id", 300) or "")
    return int(found[1]) if found and int(found[1]) <= INT32_MAX else None


def _spans(record: dict[str, Any]) -> Iterator[Callable[[], Span]]:
    """Yield what reads each span of a line, in whichever form; FieldError for too many."""
    if "resourceSpans" not in record:
        name = record.get("name")
        if isinstance(name, str) and ("start_time" in record or name.startswith(OURS)):
            yield partial(_sdk_span, record)
        return  # metrics and logs are in the same files
    count = 0
    for resource_spans in _objects(record, "resourceSpans"):
        resource = resource_spans.get("resource")
        of_all = _listed(resource) if isinstance(resource, dict) else {}
        for scope_spans in _objects(resource_spans, "scopeSpans"):
            for span in _objects(scope_spans, "spans"):
                if (count := count + 1) > SPANS_MAX:
                    raise FieldError(f"more than {SPANS_MAX} spans in a line; the rest is left out")
                yield partial(_otlp_span, span, of_all)


def _sdk_span(record: dict[str, Any]) -> Span:
    resource = record.get("resource")
    of_all = resource.get("attributes") if isinstance(resource, dict) else None
    attributes, status = record.get("attributes"), record.get("status")
    code = status.get("status_code") if isinstance(status, dict) else None
    failed = None
    if code == "ERROR":
        failed = _printable(status.get("description") if isinstance(status, dict) else None)
    return _checked(
        str(record["name"]),
        json_lines.moment(record, "start_time"),
        json_lines.moment(record, "end_time"),
        (attributes if isinstance(attributes, dict) else {}),
        (of_all if isinstance(of_all, dict) else {}),
        failed,
    )


def _otlp_span(span: dict[str, Any], resource: dict[str, Any]) -> Span:
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    failed = None
    if code in (2, "STATUS_CODE_ERROR"):
        failed = _printable(status.get("message") if isinstance(status, dict) else None)
    return _checked(
        json_lines.text(span, "name") or "",
        _nanoseconds(span, "startTimeUnixNano"),
        _nanoseconds(span, "endTimeUnixNano"),
        _listed(span),
        resource,
        failed,
    )


def _checked(
    name: str,
    start: datetime,
    end: datetime,
    attributes: dict[str, Any],
    resource: dict[str, Any],
    failed: str | None,
) -> Span:
    if not timedelta(0) <= end - start <= timedelta(seconds=DURATION_MAX_S):
        raise FieldError(f"a span {name[:100]!r} ends before it starts, or after 31 days")
    return Span(name, start, end, attributes, resource, failed)


def _printable(text: object) -> str:
    return json_lines.printable(text, MSG_MAX_CHARS) if isinstance(text, str) else "status ERROR"


def _nanoseconds(span: dict[str, Any], name: str) -> datetime:
    """Return a moment from nanoseconds, which OTLP writes as text or as a number."""
    value = span.get(name)
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not re.fullmatch(r"\d{1,20}", text) or int(text) >= NS_MAX:
        raise FieldError(f"{name} is not a number of nanoseconds since 1970")
    return EPOCH + timedelta(microseconds=int(text) // 1000)


def _objects(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = record.get(name)
    return [i for i in items if isinstance(i, dict)] if isinstance(items, list) else []


def _listed(record: dict[str, Any]) -> dict[str, Any]:
    """Return OTLP's list of attributes as a dictionary; of nested values, nothing."""
    found: dict[str, Any] = {}
    for item in _objects(record, "attributes"):
        key, value = item.get("key"), item.get("value")
        if not isinstance(key, str) or not isinstance(value, dict):
            continue
        if isinstance(value.get("stringValue"), str):
            found[key] = value["stringValue"]
        elif (number := value.get("intValue")) is not None and re.fullmatch(
            r"-?\d{1,18}", str(number)
        ):
            found[key] = int(number)
    return found

"""Job logs: parses the formats of all known frameworks in parallel into events of one gang.

A log belongs to one gang: a line of one rank applies to all, so events have no rank (which means
the gang), and `extra.log` names the log format. Steps come from the first format with steps,
failures from every format. Each life of the processes in a log starts with its own `job.start`.

A line without a time cannot be placed, and one that has only half of a known form cannot be read:
they are rejected, a bounded number of each reason. A log without any time is refused.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from goodput_ingest.formats import files, syslog
from goodput_ingest.formats.files import Part
from goodput_ingest.formats.json_text import json_lines, mllog_lines
from goodput_ingest.formats.json_text.event_lines import EXTRA_MAX_CHARS, MSG_MAX_CHARS, SCHEMA
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.source import Batch, ReadOptions, Reject
from goodput_ingest.sources.job_logs import half_matched
from goodput_ingest.sources.job_logs.composer import Composer
from goodput_ingest.sources.job_logs.cuda_oom import CudaOom
from goodput_ingest.sources.job_logs.deepspeed import DeepSpeed
from goodput_ingest.sources.job_logs.error_text import ErrorText
from goodput_ingest.sources.job_logs.events import Event, LogFormat
from goodput_ingest.sources.job_logs.half_matched import looks_like_step
from goodput_ingest.sources.job_logs.hf_trainer import HfTrainer
from goodput_ingest.sources.job_logs.lightning import Lightning
from goodput_ingest.sources.job_logs.lines import Line, cleaned
from goodput_ingest.sources.job_logs.loss import loss_of
from goodput_ingest.sources.job_logs.maxtext import MaxText
from goodput_ingest.sources.job_logs.megatron import Megatron
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.nccl_watchdog import NcclWatchdog
from goodput_ingest.sources.job_logs.nemo import Nemo
from goodput_ingest.sources.job_logs.nvrx import Nvrx
from goodput_ingest.sources.job_logs.run_name import RunName
from goodput_ingest.sources.job_logs.slurmd import Slurmd
from goodput_ingest.sources.job_logs.torchrun import Torchrun
from goodput_ingest.sources.job_logs.torchtitan import Torchtitan
from goodput_ingest.sources.job_logs.vllm import Vllm
from goodput_queries.errors import IngestError

FORMATS: tuple[type[LogFormat], ...] = (
    Megatron,
    Torchtitan,
    Nemo,
    HfTrainer,
    Lightning,
    DeepSpeed,
    Composer,
    MaxText,
    Vllm,
    Torchrun,
    NcclWatchdog,
    CudaOom,
    Nvrx,
    Slurmd,
    ErrorText,
)
ROWS_PER_BATCH = 100_000
PREAMBLE_BYTES = files.HEAD_BYTES // 2  # a shorter file has been seen whole
BEGINNING_BYTES = 4 * 1024 * 1024
STEP_MAX = 2**62
SHOWN_MAX_CHARS = 80
NUMBER = re.compile(r"\d+")
LISTED_MAX = 1_000  # rejects of one reason: a log may have millions
# NCCL prints it with NCCL_DEBUG=VERSION and above
NCCL_HINT = "NCCL version "
NCCL_VERSION = re.compile(r"NCCL version (\d[\w.]{0,30})(?:\+cuda(\d{1,3}(?:\.\d{1,3})?))?")
LOCAL_MOMENT = re.compile(r"\[?(20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)[\]\s]")


class JobLog:
    """One log file of a job, by whichever frameworks wrote into it."""

    name: ClassVar[str] = "job-log"
    needs_beginning: ClassVar[bool] = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file, its cluster, the zone of its local times and when it was read out."""
        self.path = path
        self.options = options
        self._reader = _Reader(str(path), options)
        self._run = RunName(path.name, options.run_id)
        self._so_far = ""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Say whether a framework's marks stand in plain text, behind a long preamble, too."""
        if b"\x00" in head or json_lines.are_most(head) or mllog_lines.IN_HEAD.search(head):
            return False
        if syslog.is_of_nodes(head):  # in which any program's traceback may stand
            return False
        return _is_marked(head) or (len(head) >= PREAMBLE_BYTES and _is_marked(_beginning(path)))

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.job_events`, part by part.

        Raises IngestError for a log without events, or without events that have a time, and
        ZoneNeededError for local times without a configured zone.
        """
        for part in files.parts(self.path):
            yield from self.read(part)
        reader = self._reader
        if not reader.placed:
            raise IngestError(
                f"{self.path}: the log has events ({reader.without_moment} lines) but no times. "
                "Write the log with timestamps (as kubectl logs --timestamps does), or use job "
                "events. Of a log that only shows an error, say when it was read out "
                "(--observed-at)."
                if reader.without_moment
                else f"{self.path}: {reader.first_problem}."
                if reader.first_problem
                else f"{self.path}: no line has the log format of a known framework{self.unread}."
            )

    @property
    def unread(self) -> str:
        """Say of a log without steps what its steps lack, or which line looks like one."""
        found = self._reader.plain_step
        if self._reader.steps_of is not None:
            return ""
        if self._reader.has_epochs:
            return (
                "; the dictionaries of the Hugging Face Trainer have an epoch and no step, and the "
                "lines `Num Epochs = N` and `Total optimization steps = N` before them are missing"
            )
        if found is None:
            return ""
        shown = json_lines.printable(found.text.strip(), SHOWN_MAX_CHARS)
        return (
            f"; line {found.number} ({shown}) looks like a training step of no known format: let "
            "the job write job events (goodput_emitter.py)"
        )

    def read(self, part: Part) -> Iterator[Batch]:
        """Yield the events of the next lines; raises ZoneNeededError as `extract` does."""
        options, run_id = self.options, ""
        for ordinal, (rows, rejects) in enumerate(self._reader.read(part)):
            if ordinal == 0:
                run_id = self._run.of(part, self._reader.first_line)
            # what a part means depends on the parts before it, and so does its digest
            meaning = (run_id, options.cluster, options.zone, options.observed_at)
            self._so_far = files.digest(part, self._so_far, ordinal, *meaning)
            yield self._batch(run_id, rows, rejects, self._so_far)

    def _batch(
        self, run_id: str, rows: list[dict[str, Any]], rejects: list[Reject], digest: str
    ) -> Batch:
        said = {"source": self.name, "cluster": self.options.cluster, "run_id": run_id}
        data = [tuple({**said, **row}.get(name) for name in SCHEMA) for row in rows]
        return Batch(
            "job_events",
            pl.DataFrame(data, schema=SCHEMA, orient="row"),
            self.name,
            str(self.path),
            digest,
            rejects,
        )


def _hints() -> Iterator[str]:
    return (hint for log_format in FORMATS for hint in log_format.hints)


def _is_marked(text: bytes) -> bool:
    return any(log_format.marks.search(text) for log_format in FORMATS)


def _beginning(path: Path) -> bytes:
    """Return more of a log than its first bytes: shells trace megabytes before training starts."""
    found = b""
    with contextlib.suppress(*files.BROKEN_OFF, IngestError), files.open_bytes(path) as file:
        while len(found) < BEGINNING_BYTES and (chunk := file.read(BEGINNING_BYTES - len(found))):
            found += chunk
    return found


class _Reader:
    """Reads lines in order; keeps whose steps count and whether a life has begun."""

    def __init__(self, origin: str, options: ReadOptions) -> None:
        self.formats = [log_format() for log_format in FORMATS]
        self.moments = Moments(origin, options.zone, options.observed_at)
        self.any_hint = re.compile(
            "|".join(map(re.escape, sorted({NCCL_HINT, *half_matched.HINTS, *_hints()})))
        )
        self.versions: dict[str, str] = {}  # printed since the last event
        self.steps_of: str | None = None
        self.plain_step: Line | None = None  # the first line like a step of no known format
        self.undated_error: Event | None = None  # the last failure in the text, without a time
        self.has_epochs = False  # dictionaries of which the step is not known
        self.is_life_begun = False
        self.placed = 0
        self.first_line: int | None = None  # with an event that has a moment
        self.without_moment = 0
        self.listed: Counter[str] = Counter()  # rejects by reason
        self.first_problem = ""

    def read(self, part: Part) -> Iterator[tuple[list[dict[str, Any]], list[Reject]]]:
        """Yield rows and rejects of a part, in bounded pieces."""
        if part.first_line == 1:
            self.first_line = None
        rows: list[dict[str, Any]] = []
        rejects: list[Reject] = []
        for number, raw in enumerate(part.lines, part.first_line):
            if "\x1b" not in raw and not self.any_hint.search(raw):
                self._note(number, raw)
                continue
            for text in cleaned(number, raw):
                line = self._with_time(text)
                self._keep_versions(line)
                for log_format, event in self._events(line, rejects):
                    if event.at is None:
                        if self.moments.zone is None and (found := LOCAL_MOMENT.match(line.text)):
                            self.moments.local(found[1])  # raises: its zone is not known
                        self.without_moment += 1
                        self._reject(line, "the line has no timestamp", rejects)
                    else:
                        self.first_line = self.first_line or number
                        rows.append(_row(log_format, event, self.versions))
                        self.versions = {}
            if len(rows) >= ROWS_PER_BATCH:
                self.placed += len(rows)
                yield rows, rejects
                rows, rejects = [], []
        if part.damage:
            rejects.append(Reject(part.first_line + len(part.raw_lines), part.damage))
        self.placed += len(rows)
        yield rows, rejects

    def _with_time(self, line: Line) -> Line:
        """Return a line with the local time that a program's logger wrote at its beginning."""
        if line.at is not None or (found := LOCAL_MOMENT.match(line.text)) is None:
            return line
        if self.moments.zone is None:
            return line
        try:
            return replace(line, at=self.moments.local(found[1]))
        except FieldError:
            return line  # whichever format reads the line says so

    def _keep_versions(self, line: Line) -> None:
        """Keep the versions in a line for the event after it: alone they are none."""
        if NCCL_HINT in line.text and (found := NCCL_VERSION.search(line.text)) is not None:
            self.versions["nccl_version"] = found[1]
            if found[2] is not None:
                self.versions["cuda_version"] = found[2]

    def _reject(self, line: Line, reason: str, rejects: list[Reject]) -> None:
        """Reject a line; of very many with one reason the last that is listed says so."""
        alike = NUMBER.sub("0", reason)
        self.listed[alike] += 1
        if self.listed[alike] > LISTED_MAX:
            return
        more = "; further such lines are not listed" if self.listed[alike] == LISTED_MAX else ""
        rejects.append(Reject(line.number, reason + more, json_lines.printable(line.text, 500)))

    def _note(self, number: int, raw: str) -> None:
        """Keep the time of a line without events: timestamps without a year need one."""
        self._note_plain_step(Line(number, raw))
        if raw[:2] == "20":
            for line in cleaned(0, raw):
                if line.at is not None:
                    self.moments.keep(line.at)
                    return
        if self.moments.zone is not None and (found := LOCAL_MOMENT.match(raw)) is not None:
            with contextlib.suppress(FieldError):
                self.moments.local(found[1])

    def _note_plain_step(self, line: Line) -> None:
        if self.plain_step is None and self.steps_of is None and looks_like_step(line.text):
            self.plain_step = line

    def _events(self, line: Line, rejects: list[Reject]) -> Iterator[tuple[LogFormat, Event]]:
        if line.at is not None:
            self.moments.keep(line.at)
        has_form = False
        for log_format in self.formats:
            if not any(hint in line.text for hint in log_format.hints):
                continue
            try:
                if (taken := log_format.take(line, self.moments)) is None:
                    continue
                has_form = True
                for event in _with_loss(taken, line.text):
                    if self._counts(log_format, event):
                        yield log_format, self._with_error(log_format, event)
            except (FieldError, OverflowError) as error:
                beyond = "a moment or a duration is beyond the calendar"
                reason = str(error) if isinstance(error, FieldError) else beyond
                has_form = True
                self.first_problem = self.first_problem or f"line {line.number}: {reason}"
                self._reject(line, reason, rejects)
        if has_form:
            return
        self._note_plain_step(line)
        if (lack := half_matched.missing(line.text)) is not None:
            self.first_problem = self.first_problem or f"line {line.number}: it {lack}"
            self._reject(line, f"the line {lack}", rejects)

    def _with_error(self, log_format: LogFormat, event: Event) -> Event:
        """Return a failure; the one that torchrun dates names the error printed before it."""
        if log_format.name == ErrorText.name:
            self.undated_error = event if event.at is None else None
        elif log_format.name == Torchrun.name and self.undated_error is not None:
            error, self.undated_error = self.undated_error, None
            if event.kind == "exception":
                return replace(event, kind=error.kind, msg=f"{error.msg} ({event.msg})")
        return event

    def _counts(self, log_format: LogFormat, event: Event) -> bool:
        """Say whether an event is new: not another format's step, not a life's second start."""
        if event.event == "step":
            if self.steps_of is None and event.at is not None:
                self.steps_of = log_format.name
            if self.steps_of is None:
                return True  # without a time: counted, in case no other format has one
            if self.steps_of != log_format.name or (event.step or 0) > STEP_MAX:
                return False
            self.is_life_begun = False
        elif event.event == "metric":
            self.has_epochs = self.has_epochs or log_format.name == HfTrainer.name
        elif event.event == "job.end" or (
            # an error in the text may have been handled
            event.event == "failure" and log_format.name != ErrorText.name
        ):
            self.is_life_begun = False
        elif event.event == "job.start":
            is_new, self.is_life_begun = not self.is_life_begun, True
            return is_new
        return True


def _with_loss(events: Iterable[Event], text: str) -> Iterable[Event]:
    """Return the events of a line; the loss that it prints is of the last step among them."""
    if (loss := loss_of(text)) is None:
        return events
    found = list(events)
    for position in reversed(range(len(found))):
        if found[position].event == "step":
            found[position] = replace(found[position], loss=loss)
            break
    return found


def _row(log_format: LogFormat, event: Event, versions: dict[str, str]) -> dict[str, Any]:
    extra = json.dumps({"log": log_format.name, **versions, **event.extra}, ensure_ascii=True)
    return {
        "ts": event.at,
        "event": event.event,
        "step": event.step,
        "dur_s": event.dur_s,
        "phase": event.phase,
        "tokens": event.tokens,
        "samples": event.samples,
        "gpu_tokens": event.gpu_tokens,
        "gpu_flops": event.gpu_flops,
        "mfu_ratio": event.mfu_ratio,
        "loss": event.loss,
        "kind": event.kind,
        "msg": None if event.msg is None else json_lines.printable(event.msg, MSG_MAX_CHARS),
        "reports_durability": log_format.reports_durability,
        "extra": extra if len(extra) <= EXTRA_MAX_CHARS else None,
    }

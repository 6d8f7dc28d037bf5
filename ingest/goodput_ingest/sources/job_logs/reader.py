"""Reads the lines of a job's log by all formats, into rows of job events and rejects."""

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import chain
from math import isfinite
from typing import Any

from goodput_ingest.formats.files import Part
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.event_lines import EXTRA_MAX_CHARS, MSG_MAX_CHARS
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.formats.timestamps import ZoneNeededError
from goodput_ingest.source import ReadOptions, Reject
from goodput_ingest.sources.job_logs.error_text import AFTER, ErrorText
from goodput_ingest.sources.job_logs.events import PLACED, READ_OUT, Event, LogFormat
from goodput_ingest.sources.job_logs.formats import (
    ALMOST,
    ALMOST_HINTS,
    Format,
    formats,
    looks_like_step,
)
from goodput_ingest.sources.job_logs.hf_trainer import HfTrainer
from goodput_ingest.sources.job_logs.lines import Line, cleaned, uncoloured
from goodput_ingest.sources.job_logs.loss import loss_of, with_loss
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.nemo import Nemo
from goodput_ingest.sources.job_logs.planned_steps import PLANNED_STEPS, PlannedSteps
from goodput_ingest.sources.job_logs.torchrun import Torchrun
from goodput_ingest.sources.job_logs.unread_lines import UnreadLines
from goodput_ingest.sources.job_logs.world_size import HINTS, WORLD_SIZE, WorldSize

Fact = tuple[str, int | None, str | None]  # event, step, message

BEGINNING_BYTES = 4 * 1024 * 1024  # in which a trainer's marks stand
ROWS_PER_BATCH = 100_000
STEP_MAX = 2**62
NUMBER = re.compile(r"\d+")
LISTED_MAX = 1_000  # rejects of one reason: a log may have millions
# NCCL prints it with NCCL_DEBUG=VERSION and above
NCCL_HINT = "NCCL version "
NCCL_VERSION = re.compile(r"NCCL version (\d[\w.]{0,30})(?:\+cuda(\d{1,3}(?:\.\d{1,3})?))?")
CLOCK = re.compile(r"\d\d:\d\d:\d\d")  # such a line has a time, of whatever form
READ_AT = "when the file grew"
NEXT = "the first time after it"
UNDATED = "the line has no timestamp"
UNREAD_TIME = "the line has a time of a form that is not read; one as 2026-08-20 14:03:11 is"
UNREAD_CLOCK = re.compile(r".{0,40}?(?<![\d:<])\d\d:\d\d:\d\d(?![\d:<])")  # of a bar: <01:10:12


class LogReader:
    """Reads lines in order; keeps whose steps count and whether a life has begun."""

    def __init__(
        self, origin: str, options: ReadOptions, known: tuple[Format, ...] | None = None
    ) -> None:
        """Take the file's name for messages, the options of its ingest and the formats to read."""
        known = formats() if known is None else known
        self.trainers = [one for one in known if one.has_steps and not one.is_fallback]
        self.fallbacks = {one.name for one in known if one.is_fallback}
        self.undated = {one.name for one in known if one.is_undated}
        self.grown_at: datetime | None = None  # about when the line was written
        self.formats = [log_format.new() for log_format in known]
        self.tracebacks: dict[int | None, tuple[bool, bool]] = next(  # each line of one is read
            (one.tracebacks for one in self.formats if isinstance(one, ErrorText)), {}
        )
        self.of_losses = ErrorText()  # that are not finite: a step's line is no other's repetition
        self.almost = (*ALMOST, *(almost for one in known for almost in one.almost))
        self.moments = Moments(origin, options.zone, options.observed_at)
        self.any_hint = self._any_hint()
        self.versions: dict[str, str] = {}  # printed since the last event
        self.processes = WorldSize()
        self.planned = PlannedSteps()
        self.steps_of: str | None = None
        self.plain_step: Line | None = None  # the first line like a step of no known format
        # failures before the first time in the log, which dates them
        self.early: list[tuple[Line, LogFormat, Event]] = []
        self.undated_error: Event | None = None  # the last failure in the text, without a time
        self.unread = UnreadLines()
        self.has_epochs = False  # dictionaries of which the step is not known
        self.is_life_begun = False
        self.placed = 0
        self.first_line: int | None = None  # with an event that has a moment
        # lines without a time, by what they say: a later line may say when that was
        self.lacking: dict[Fact, list[tuple[Line, str]]] = defaultdict(list)
        self.without_moment, self.first_lack = 0, ""
        self.listed: Counter[str] = Counter()  # rejects by reason
        self.first_problem = ""

    def read(self, part: Part) -> Iterator[tuple[list[dict[str, Any]], list[Reject]]]:
        """Yield rows and rejects of a part, in bounded pieces."""
        if part.first_line == 1:
            self.first_line = None
        if self.fallbacks:
            beginning = uncoloured(part.data[:BEGINNING_BYTES])
            if any(one.is_in(beginning) for one in self.trainers):
                self._drop_fallbacks()
        rows: list[dict[str, Any]] = []
        rejects: list[Reject] = []
        for number, raw in enumerate(part.lines, part.first_line):
            if self.early and self.moments.last is not None:
                self._place_early(rows)
            if "\x1b" not in raw and not self.tracebacks and not self.any_hint.search(raw):
                self._note(number, raw)
                continue
            for text in cleaned(number, raw):
                line = self._with_time(text)
                if part.written is not None:
                    share = (number - part.first_line + 1) / len(part.lines)
                    self.grown_at = part.written[0] + (part.written[1] - part.written[0]) * share
                self._keep_versions(line)
                self.processes.take(line.text)
                has_facts, rejected = False, len(rejects)
                for log_format, event in self._events(line, rejects):
                    has_facts = True
                    if event.extra.get("at") == READ_OUT:
                        self.early.append((line, log_format, event))
                    else:
                        self._place(line, log_format, event, rows)
                if not has_facts and len(rejects) == rejected:
                    self.planned.take(line.text)
            if len(rows) >= ROWS_PER_BATCH:
                self.placed += len(rows)
                yield rows, rejects
                rows, rejects = [], []
        self._place_early(rows)
        rejects += [*self._rejects_without_time(self._waiting()), *part.cut]
        self._reject_unread(rejects, at_end=False)
        self.placed += len(rows)
        yield rows, rejects

    def _place(
        self, line: Line, log_format: LogFormat, event: Event, rows: list[dict[str, Any]]
    ) -> None:
        """Add the row of an event, or note that its line has no time."""
        if event.at is None:
            lack = self._lack_of_time(line)
            self.first_lack = self.first_lack or f"line {line.number}: {lack}"
            self.lacking[_fact(event)].append((line, lack))
            return
        if event.extra.get("at") == PLACED:
            self.lacking.pop(_fact(event), None)
        self.first_line = self.first_line or line.number
        self.planned.take(line.text)
        rows.append(_row(log_format, event, self.versions))
        self.unread.forget(rows[-1])
        self.versions = {}
        rows += self._size_at(log_format, event)

    def _place_early(self, rows: list[dict[str, Any]]) -> None:
        """Add failures that stand before the first time in the log: just before that time."""
        early, self.early = self.early, []
        placed: set[str | None] = set()
        for line, log_format, found in early:
            event = found
            if self.moments.last is not None:
                if found.kind in placed:  # said again
                    continue
                placed.add(found.kind)
                extra = {**found.extra, "at": NEXT}
                event = replace(found, at=self.moments.last - AFTER, extra=extra)
            self._place(line, log_format, event, rows)

    def rest(self) -> list[Reject]:
        """Return the rejects of lines for whose time the log ended too early."""
        rejects = self._rejects_without_time(set())
        self._reject_unread(rejects, at_end=True)
        return rejects

    @property
    def first_waiting(self) -> Line | None:
        """Return the first line that a later one may date."""
        return next((line for lines in self.lacking.values() for line, _ in lines), None)

    def _waiting(self) -> set[Fact]:
        """Return what a line of a later part may date."""
        of_nemo = (one.waiting for one in self.formats if isinstance(one, Nemo))
        return {_fact(event) for event in chain(*of_nemo)}

    def _rejects_without_time(self, kept: set[Fact]) -> list[Reject]:
        """Reject lines without a time but for those that say what is kept."""
        rejects: list[Reject] = []
        due = [self.lacking.pop(fact) for fact in [*self.lacking] if fact not in kept]
        lacking = {line.number: (line, lack) for line, lack in chain(*due)}
        for _, (line, lack) in sorted(lacking.items()):
            self.without_moment += 1
            self._reject(line, lack, rejects)
        return rejects

    def _reject_unread(self, rejects: list[Reject], *, at_end: bool) -> None:
        """Reject lines of no known format that look like a fact."""
        for line, reason in self.unread.due(at_end=at_end):
            self._reject(line, reason, rejects)

    def _any_hint(self) -> re.Pattern[str]:
        """Return the pattern of all hints, by first letter: tried at each place of a long log."""
        hints = {hint for log_format in self.formats for hint in log_format.hints}
        by_letter: dict[str, list[str]] = defaultdict(list)
        for hint in sorted({NCCL_HINT, *ALMOST_HINTS, *HINTS, *hints}):
            by_letter[hint[:1]].append(re.escape(hint[1:]))
        return re.compile(
            "|".join(f"{re.escape(one)}(?:{'|'.join(rest)})" for one, rest in by_letter.items())
        )

    def _drop_fallbacks(self) -> None:
        """Read no more by the formats of logs that bear no trainer's marks."""
        self.formats = [one for one in self.formats if one.name not in self.fallbacks]
        self.fallbacks = set()
        self.any_hint = self._any_hint()

    def _with_time(self, line: Line) -> Line:
        """Return a line with the local time that a program's logger wrote at its beginning."""
        if line.at is not None:
            return line
        try:
            return replace(line, at=self.moments.logged(line.text))
        except (FieldError, ZoneNeededError):
            return line  # whichever format reads the line says so

    def _lack_of_time(self, line: Line) -> str:
        """Return why a line has no time; raises ZoneNeededError where only its zone is unknown."""
        try:
            self.moments.logged(line.text)
        except FieldError as error:
            return str(error)
        return UNREAD_TIME if UNREAD_CLOCK.match(line.text) else UNDATED

    def _keep_versions(self, line: Line) -> None:
        """Keep the versions in a line for the event after it: alone they are none."""
        if NCCL_HINT in line.text and (found := NCCL_VERSION.search(line.text)) is not None:
            self.versions["nccl_version"] = found[1]
            if found[2] is not None:
                self.versions["cuda_version"] = found[2]

    def _size_at(self, log_format: LogFormat, event: Event) -> list[dict[str, Any]]:
        """Return the job's processes and planned steps at an event, where the log printed them."""
        if event.event == "job.start":  # and at one moment the life before it would have them
            self.processes.begin()
            self.planned.begin()
            return []
        found = {WORLD_SIZE: self.processes.news(), PLANNED_STEPS: self.planned.news()}
        said = [
            Event("metric", event.at, kind=kind, extra={kind: number})
            for kind, number in found.items()
            if number is not None
        ]
        return [_row(log_format, one, {}) for one in said]

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
        line = Line(number, raw)
        self._note_plain_step(line)
        self.unread.take(line)
        if raw[:2] == "20":
            for labelled in cleaned(0, raw):
                if labelled.at is not None:
                    self.moments.keep(labelled.at)
                    return
        with contextlib.suppress(FieldError, ZoneNeededError):
            self.moments.logged(raw)

    def _note_plain_step(self, line: Line) -> None:
        if self.plain_step is None and self.steps_of is None and looks_like_step(line.text):
            self.plain_step = line

    def _events(self, line: Line, rejects: list[Reject]) -> Iterator[tuple[LogFormat, Event]]:
        if line.at is not None:
            self.moments.keep(line.at)
        has_form = is_guess = False
        for log_format in self.formats:
            for hint in log_format.hints:  # as a generator it takes twice the time
                if hint in line.text:
                    break
            else:
                if not self.tracebacks or log_format.name != ErrorText.name:
                    continue
            reading = log_format
            if has_form and log_format.name == ErrorText.name:
                loss = loss_of(line.text)
                if isfinite(loss or 0) and not (is_guess and loss is None):
                    continue  # the line's own format says what failed, but not of a step
                reading = self.of_losses
            is_grown = self._is_dated_by_growth(log_format, line)
            seen = replace(line, at=self.grown_at) if is_grown else line
            try:
                if (taken := reading.take(seen, self.moments)) is None:
                    continue
                is_guess = log_format.name in self.fallbacks and (is_guess or not has_form)
                has_form = True
                for event in with_loss(taken, line.text):
                    if self._counts(log_format, event):
                        yield log_format, self._with_error(log_format, event, is_grown=is_grown)
            except (FieldError, OverflowError) as error:
                beyond = "a moment or a duration is beyond the calendar"
                reason = str(error) if isinstance(error, FieldError) else beyond
                has_form = True
                self.first_problem = self.first_problem or f"line {line.number}: {reason}"
                self._reject(line, reason, rejects)
        if has_form:
            return
        self._note_plain_step(line)
        almost = next((one for one in self.almost if one.form.search(line.text)), None)
        if almost is None:
            self.unread.take(line)
        else:
            self.first_problem = self.first_problem or f"line {line.number}: it {almost.reason}"
            self._reject(line, f"the line {almost.reason}", rejects)

    def _is_dated_by_growth(self, log_format: LogFormat, line: Line) -> bool:
        """Say whether a line has the time at which the file grew: nothing in the log has one."""
        return (
            self.grown_at is not None
            and log_format.name in self.undated
            and line.at is None
            and self.moments.last is None
            and not CLOCK.search(line.text)
        )

    def _with_error(self, log_format: LogFormat, event: Event, *, is_grown: bool) -> Event:
        """Return a failure; the one that torchrun dates names the error printed before it."""
        if is_grown:
            event = replace(event, extra={**event.extra, "at": READ_AT})
        if log_format.name == ErrorText.name:
            self.undated_error = event if event.at is None else None
        elif log_format.name == Torchrun.name and self.undated_error is not None:
            error, self.undated_error = self.undated_error, None
            if event.kind == "exception":
                self.lacking.pop(_fact(error), None)
                self.early = [one for one in self.early if one[2] is not error]
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


def _fact(event: Event) -> Fact:
    return event.event, event.step, event.msg


def _row(log_format: LogFormat, event: Event, versions: dict[str, str]) -> dict[str, Any]:
    extra = json_lines.dumped({"log": log_format.name, **versions, **event.extra})
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

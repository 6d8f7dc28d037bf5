"""Reads lines by a profile, into the events of a job's log."""

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.job_logs.events import READ_OUT, Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.loss import loss_of
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.profiles.numbers import StepNumbers, Values, integer
from goodput_ingest.sources.job_logs.profiles.profile import IN_BRACES, LineForm, Profile
from goodput_ingest.sources.job_logs.progress import Progress, with_amounts

MESSAGE_MAX_CHARS = 300
INTEGER = re.compile(r"0|[1-9]\d{0,17}")  # with leading zeros it is a name
DECIMAL = re.compile(r"\d{1,15}\.\d{1,15}")
SCALES = {"K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}


class ProfiledLog:
    """The state of one log that is read by a profile."""

    def __init__(self, profile: Profile) -> None:
        """Begin with nothing known of the job."""
        self.profile = profile
        self.name, self.hints = profile.name, profile.hints
        self.reports_durability = profile.durability
        self.progress = Progress()
        self.reporter: str | None = None
        self.phases: dict[str, datetime] = {}  # since when, of those that began
        self.last: Event | None = None  # step
        self.has_stepped = False  # since the last save began
        self.is_restored = False
        self.pending: Event | None = None  # a complete save, durable unless it is uploaded
        self.seen: dict[tuple[str, str], int] = {}  # of `once`: the last number
        self.numbers = StepNumbers(is_inferred=profile.is_fallback)

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the events in a line; None: it has no form of this profile.

        Raises FieldError for a broken line.
        """
        for form, pattern in self.profile.forms:
            if (found := pattern.search(line.text)) is None:
                continue
            values = form.defaults | {k: v for k, v in found.groupdict().items() if v is not None}
            for name, field in form.of_fields.items():
                if (value := field.search(line.text)) is not None:
                    values[name] = value[1]
            if not self._is_read(form, values):
                return ()
            return self._events(form, values, line, moments)
        return None

    def _is_read(self, form: LineForm, values: Values) -> bool:
        """Say whether it is the reporter's line, and the first one of its number."""
        if (reporter := values.get("reporter")) is not None:
            self.reporter = self.reporter or reporter
            if reporter != self.reporter:
                return False
        if form.once:
            key, number = (form.means, form.once), integer(values, form.once)
            if number <= self.seen.get(key, -1):
                return False
            self.seen[key] = number
        return True

    def _events(
        self, form: LineForm, values: Values, line: Line, moments: Moments
    ) -> Iterable[Event]:
        at = _moment(values, line, moments, label_first=self.profile.label_first)
        match form.means:
            case "step":
                return (*self._take_pending(), *self._steps(form, values, at, line.text))
            case "loss":
                return self._loss(values, line.text)
            case "durable":
                return self._durable(form, values, at)
            case "failure":
                return self._failure(form, values, at, line, moments)
            case "metric":
                kind = None if form.kind is None else _filled(form.kind, values)
                return (Event("metric", at, kind=kind, extra=_extra(form, values)),)
            case "start":
                self.progress = Progress()
                self.numbers.restart()
                self.phases, self.is_restored = {}, False
                return (Event("job.start", at, extra=_extra(form, values)),)
            case "end":
                return (Event("job.end", at, extra=_extra(form, values)),)
            case "training":
                self._begin_training(form, values, at)
            case "epoch":
                self.numbers.begin_epoch(integer(values, "epoch"))
            case "upload":
                self.pending = None
            case "save_begin" | "save_end" | "save":
                return self._save(form, values, at)
            case means if form.phase is not None:
                self.is_restored = self.is_restored or means.startswith("restore")
                return self._phase(form, values, at)
        return ()

    def _steps(
        self, form: LineForm, values: Values, at: datetime | None, text: str
    ) -> Iterable[Event]:
        if "steps_of_bar" in values and self.numbers.is_other_bar(
            values, has_loss=loss_of(text) is not None
        ):
            return ()
        if values.keys() & {"step", "samples_done"}:
            ran_s = _length_s(values, "seconds", "milliseconds")
            bar = None if at is None or ran_s is None else (at - timedelta(seconds=ran_s), at)
            step = self.numbers.of(form, values, bar) + (form.first_step == 0)
        else:
            step = (self.progress.step or 0) + 1
        if form.repeats and step == self.progress.step:
            return self._loss(values, text)
        self.has_stepped = True
        each_s = _length_s(values, "step_s", "step_ms")
        if each_s is None and (rate := _number(values, "steps_per_s")):
            each_s = 1 / rate
        if each_s is not None and not 0 <= each_s <= DURATION_MAX_S:
            raise FieldError("a step of more than 31 days")
        done, since = self.progress.step, self.progress.at
        if each_s is not None:
            events = self.progress.mean(step, each_s, at)
        elif at is None:
            self.last = Event("step", None, step=step)
            return (self.last,)
        else:
            events = self.progress.point(step, at)
            if done is not None and since is not None and step > done and at > since:
                each_s = (at - since).total_seconds() / (step - done)
        events = _with_amounts(events, values, each_s)
        if events:
            events[-1] = self.last = replace(events[-1], loss=_loss(values, text))
        return events

    def _loss(self, values: Values, text: str) -> Iterable[Event]:
        """Return the loss of the last step, which another line of it prints first."""
        if self.last is None or self.last.loss is not None:
            return ()
        if (loss := _loss(values, text)) is None:
            return ()
        self.last = replace(self.last, loss=loss)
        return (Event("metric", self.last.at, step=self.last.step, loss=loss),)

    def _begin_training(self, form: LineForm, values: Values, at: datetime | None) -> None:
        """Take note that the next step begins now; `step` is its number."""
        if "step" in values:
            self.progress.begin(self.numbers.of(form, values) - 1, at or self.progress.at)
        else:
            self.progress.begin(None if self.is_restored else 0, at)

    def _save(self, form: LineForm, values: Values, at: datetime | None) -> Iterable[Event]:
        is_begun = "ckpt_save" in self.phases
        if form.means == "save_begin":
            if is_begun and not self.has_stepped:
                return ()  # a save of several files
            self.has_stepped = False
            return (*self._take_pending(), *self._phase(form, values, at))
        if form.means == "save_end" and not is_begun:
            return self._saved(form, values, at)
        return (*self._phase(form, values, at), *self._saved(form, values, at))

    def _saved(self, form: LineForm, values: Values, at: datetime | None) -> Iterable[Event]:
        """Return that the save is durable, if it is; else keep that it may be."""
        if not form.durable:
            return ()
        events = self._durable(form, values, at)
        if form.durable != "pending":
            return events
        self.pending = next(iter(events), None)
        return ()

    def _durable(self, form: LineForm, values: Values, at: datetime | None) -> Iterable[Event]:
        step = self.progress.step
        if "step" in values:
            step = integer(values, "step") + (
                form.first_step == 0 and self.progress.step is not None
            )
        return () if step is None else (Event("ckpt.durable", at, step=step),)

    def _take_pending(self) -> Iterable[Event]:
        pending, self.pending = self.pending, None
        return () if pending is None else (pending,)

    def _phase(self, form: LineForm, values: Values, at: datetime | None) -> Iterable[Event]:
        """Return the begin, the end or the whole of a phase, in which no step is done."""
        phase = form.phase
        if phase is None:
            return ()
        if form.means.endswith("_begin"):
            if at is not None:
                self.phases[phase] = at
            return (Event("phase.start", at, phase=phase),)
        if form.means.endswith("_end"):
            start = self.phases.pop(phase, None)
            if (
                start is not None
                and at is not None
                and not (phase == "ckpt_save" and self.has_stepped)
            ):
                self.progress.block(start, at)
            return (Event("phase.end", at, phase=phase),)
        length_s = _length_s(values, "seconds", "milliseconds") or 0.0
        if not 0 <= length_s <= DURATION_MAX_S:
            raise FieldError(f"a {phase} of more than 31 days")
        if at is not None:
            self.progress.block(at - timedelta(seconds=length_s), at)
        return (Event("phase", at, phase=phase, dur_s=length_s),)

    def _failure(
        self, form: LineForm, values: Values, at: datetime | None, line: Line, moments: Moments
    ) -> Iterable[Event]:
        """Return a failure, and that the job ended where the line says so."""
        extra = _extra(form, values)
        if line.rank is not None:
            extra = {"rank": line.rank} | extra
        if at is None and moments.last is not None:
            at, extra["at"] = moments.last, "the last time before it"
        elif at is None:
            at, extra["at"] = moments.observed_at, READ_OUT
        ran_ms = _number(values, "ran_ms")
        if ran_ms is not None and at is not None and ran_ms < DURATION_MAX_S * 1000:
            extra["hang_began_at"] = f"{(at - timedelta(milliseconds=ran_ms)).isoformat()}Z"
        message = _filled(form.message, values) if form.message else values.get("message")
        message = (message or line.text.strip())[:MESSAGE_MAX_CHARS]
        kind = _filled(form.kind or "other", values)
        failure = Event("failure", at, kind=kind, msg=message, extra=extra)
        return (failure, Event("job.end", at)) if form.is_end else (failure,)


def _moment(values: Values, line: Line, moments: Moments, *, label_first: bool) -> datetime | None:
    """Return the time that a line prints, else its collector's, naive UTC."""
    if "time_utc" in values:
        return moments.keep(json_lines.moment({"at": values["time_utc"] + "Z"}, "at"))
    if "epoch_s" in values:
        seconds = _number(values, "epoch_s")
        return moments.epoch(math.nan if seconds is None else seconds)  # NaN: out of range
    if "time" in values:
        return moments.of(line, values["time"])
    if "year" in values:
        day = f"20{values['year'][-2:]}-{values['month']}-{values['day']}"
        return moments.of(line, f"{day} {values['clock']}")
    is_label = line.at is not None and (moments.zone is None or label_first)
    if "clock" not in values or is_label:
        return line.at
    return moments.without_year(integer(values, "month"), integer(values, "day"), values["clock"])


def _with_amounts(events: list[Event], values: Values, each_s: float | None) -> list[Event]:
    """Return the steps with what each did; rates count for the length of a step."""

    def of_a_step(amount: str, rate: str, scale: float = 1) -> float | None:
        if (value := _number(values, amount)) is not None or each_s is None:
            return value
        return None if (value := _number(values, rate)) is None else value * scale * each_s

    mfu_percent = _number(values, "mfu_percent")
    return with_amounts(
        events,
        tokens=of_a_step("tokens", "tokens_per_s"),
        samples=_number(values, "samples"),
        gpu_tokens=of_a_step("", "gpu_tokens_per_s"),
        gpu_flops=of_a_step("", "gpu_tflops_per_s", 1e12),
        mfu_ratio=None if mfu_percent is None else mfu_percent / 100,
    )


def _loss(values: Values, text: str) -> float | None:
    """Return the loss of a line, which may be NaN or infinite; None where there is none."""
    if (said := values.get("loss")) is None:
        return loss_of(text)
    try:
        return float(said.replace(",", ""))
    except ValueError:
        raise FieldError(f"loss is {said!r}, which is no number") from None


def _length_s(values: Values, seconds: str, milliseconds: str) -> float | None:
    if (length_s := _number(values, seconds)) is not None:
        return length_s
    return None if (length_ms := _number(values, milliseconds)) is None else length_ms / 1000


def _number(values: Values, name: str) -> float | None:
    """Return a number such as 8,214 or 2.25K, of 1:02:03 seconds; None where there is none."""
    if (text := values.get(name)) is None:
        return None
    number = 0.0
    try:
        for part in text.rstrip("KMBGT").replace(",", "").split(":"):
            number = number * 60 + float(part)
    except ValueError:
        raise FieldError(f"{name} is {text!r}, which is no number") from None
    number *= SCALES.get(text[-1:], 1.0)
    return number if math.isfinite(number) else None


def _extra(form: LineForm, values: Values) -> dict[str, Any]:
    """Return the values that are kept with an event, numbers as such; percents as ratios."""
    found: dict[str, Any] = {}
    for name in form.extra:
        if (text := values.get(name)) is None:
            continue
        if name.endswith("_percent"):
            percent = _number(values, name)
            found[name.removesuffix("percent") + "ratio"] = percent and percent / 100
        elif INTEGER.fullmatch(text):
            found[name] = int(text)
        elif DECIMAL.fullmatch(text):
            found[name] = float(text)
        else:
            found[name] = text
    return found


def _filled(text: str, values: Values) -> str:
    return IN_BRACES.sub(lambda found: values.get(found[1], ""), text)

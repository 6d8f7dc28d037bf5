"""Megatron-LM (megatron/training/training.py, checkpointing.py), from 2020 to 2026, and forks of it.

 [2026-08-20 14:03:11.482913] iteration      120/   50000 | ... | elapsed time per iteration (ms): 4021.7 | ...

The last rank prints iterations, rank 0 the rest. Releases before 2023 print no moment with an
iteration: they follow each other from the printed start of training, or from the last line with a
moment, which they cannot be before. "successfully saved" comes when a save is final, which for an
asynchronous one is long after training went on: it blocked until "scheduled an async checkpoint
save", without that line for no known time. After a save during which training went on all are
asynchronous.
Some forks print the mean of all iterations behind the time of this one, `15995.5/16030.1`.
"""  # noqa: E501 -- the line as it is printed

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar

from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.progress import Progress, with_amounts

STAMP = r"(?:\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\]\s*)?"
ITERATION = re.compile(STAMP + r"\biteration\s+(?P<step>\d{1,12})/\s*\d+ \|(?P<rest>.*\|)")
BATCH = re.compile(r"\bglobal batch size:\s+(\d{1,12}) \|")
CONSUMED = re.compile(r"\bconsumed samples:\s+(\d{1,18}) \|")
# by Megatron's own count of model FLOPs
MEAN = r"(?:/[\d.]{1,20})?"  # of all iterations, behind the number of this one
RATE = re.compile(rf"throughput per GPU \(TFLOP/s/GPU\): (\d{{1,9}}(?:\.\d{{1,9}})?){MEAN} \|")
ELAPSED = re.compile(rf"elapsed time per iteration \(ms\): ([\d.]{{1,20}}){MEAN} \|")
SAVING = re.compile(STAMP + r"saving checkpoint at iteration\s+(?P<step>\d{1,12})\b")
SCHEDULED = re.compile(STAMP + r"scheduled an async checkpoint save at iteration\s+\d{1,12} to ")
SAVED = re.compile(
    STAMP + r"successfully saved checkpoint (?:at|from) iteration\s+(?P<step>\d{1,12})\b"
)
LOADED = re.compile(r"successfully loaded checkpoint from .* at iteration (\d{1,12})\s*$")
TIMER = re.compile(
    r"\b(save|load)-checkpoint(?: \.+)?: \(?(?:[\d.]+, )?([\d.]{1,20})(?:\)| \||\s*$)"
)
INIT = re.compile(r"time to initialize megatron \(seconds\): ([\d.]{1,20})\s*$")
DATETIME = re.compile(
    r"\[(?P<what>[^\]]{3,120})\] datetime: (?P<at>\d{4}-\d\d-\d\d [\d:.]{8,15})(?=\s)"
)
ARGUMENT = re.compile(r"^\s*(log_interval|async_save) \.{3,} (\w+)\s*$")


class Megatron:
    """Iterations, saves, loads and the printed moments of start-up and end."""

    name: ClassVar[str] = "megatron"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"time to initialize megatron \(seconds\)|elapsed time per iteration \(ms\)"
        rb"|(?:saving checkpoint at|successfully saved checkpoint (?:at|from)) iteration "
        rb"|using world size: \d+, .*tensor-model-parallel|initializing torch distributed"
        rb"|\[(?:after megatron is initialized|before the start of training step)\] datetime"
    )
    hints: ClassVar[tuple[str, ...]] = (
        "elapsed time per iteration",
        "checkpoint",
        "] datetime:",
        "time to initialize megatron",
        "log_interval ..",
        "async_save ..",
    )
    reports_durability: ClassVar[bool] = True

    def __init__(self) -> None:
        """Begin with nothing known of the job."""
        self.progress = Progress()
        self.consumed: tuple[int, int] | None = None  # step, samples so far
        self.init_s: float | None = None
        self.restore_s: float | None = None
        self.is_async = False
        self.save_from: datetime | None = None
        self.save_step: int | None = None
        self.has_trained_since_save = False

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the events of a line."""
        text = line.text
        if (found := ITERATION.search(text)) and (elapsed := ELAPSED.search(found["rest"])):
            at = self._moment(found["at"], line, moments)
            mean_s = _seconds(elapsed[1]) / 1000
            if mean_s > DURATION_MAX_S:
                raise FieldError("an iteration of more than 31 days")
            step, rest = int(found["step"]), found["rest"]
            if at is None and moments.last is not None:
                self.progress.not_before(step, mean_s, moments.last)
            # a save now continues in the background: its end blocks nothing
            self.has_trained_since_save = self.save_step is not None and step > self.save_step
            rate = RATE.search(rest)
            return with_amounts(
                self.progress.mean(step, mean_s, at),
                samples=self._samples(step, rest),
                gpu_flops=None if rate is None else float(rate[1]) * 1e12 * mean_s,
            )
        if found := SAVING.search(text):
            return self._saving(int(found["step"]), self._moment(found["at"], line, moments))
        if found := SCHEDULED.search(text):
            return self._scheduled(self._moment(found["at"], line, moments))
        if found := SAVED.search(text):
            at = self._moment(found["at"], line, moments)
            return self._saved(int(found["step"]), at, moments.last)
        if found := DATETIME.search(text + " "):
            return self._datetime(found["what"], moments.of(line, found["at"]))
        return self._state(text)

    def _state(self, text: str) -> Iterable[Event] | None:
        """Keep what a line says of the events after it."""
        if found := LOADED.search(text):
            self.progress.begin(int(found[1]), self.progress.at)
        elif found := TIMER.search(text):
            return self._timer(found[1], _seconds(found[2]) / 1000)
        elif found := INIT.search(text):
            self.init_s = _seconds(found[1])
        elif found := ARGUMENT.match(text):
            if found[1] == "async_save":
                self.is_async = found[2] == "True"
            elif found[2].isdecimal():
                self.progress.log_interval = int(found[2])
        else:
            return None
        return ()

    def _samples(self, step: int, rest: str) -> float | None:
        """Return the samples of one step: of the line, else by what was consumed since the last."""
        batch, consumed = BATCH.search(rest), CONSUMED.search(rest)
        before, self.consumed = self.consumed, consumed and (step, int(consumed[1]))
        if batch is not None:
            return float(batch[1])
        if before is None or self.consumed is None or step <= before[0]:
            return None
        return (self.consumed[1] - before[1]) / (step - before[0])

    @staticmethod
    def _moment(stamp: str | None, line: Line, moments: Moments) -> datetime | None:
        return line.at if stamp is None else moments.of(line, stamp)

    def _saving(self, step: int, at: datetime | None) -> Iterable[Event]:
        if at is not None:
            at = self.progress.in_second(at, self.progress.at)
        self.save_from, self.save_step, self.has_trained_since_save = at, step, False
        if self.is_async or at is None:
            return ()
        return (Event("phase.start", at, phase="ckpt_save"),)

    def _scheduled(self, at: datetime | None) -> Iterable[Event]:
        """Return the part of an asynchronous save that blocked."""
        start, self.save_from = self.save_from, None
        was_async, self.is_async = self.is_async, True
        if start is None:
            return ()
        end = start if at is None else at  # without a moment it is not known how long it blocked
        self.progress.block(start, end)
        if not was_async:
            return (Event("phase.end", end, phase="ckpt_save"),)
        length_s = (end - start).total_seconds()
        return (Event("phase", end, phase="ckpt_save", dur_s=length_s),) if length_s > 0 else ()

    def _saved(self, step: int, at: datetime | None, last: datetime | None) -> Iterable[Event]:
        """Return that a step is durable; where no line trained in between, the save ends too.

        last: the last moment that the log has printed.
        """
        done, extra = at, {}
        if at is None:
            done = max(filter(None, (self.progress.at, last)), default=None)
            is_step = done == self.progress.at
            extra["at"] = "the end of the last step" if is_step else "the last time before it"
        durable = Event("ckpt.durable", done, step=step, extra=extra)
        start, self.save_from = self.save_from, None
        if start is None or at is None or self.is_async:
            return (durable,)
        if self.has_trained_since_save:
            self.is_async = True  # and so are the saves after it
        else:
            self.progress.block(start, at)
        return (Event("phase.end", at, phase="ckpt_save"), durable)

    def _timer(self, what: str, length_s: float) -> Iterable[Event]:
        """Add how long a save or load blocked, where no lines show it."""
        if what == "load":
            self.restore_s = length_s
            return ()
        start = self.save_from or self.progress.at
        is_known = self.progress.blocks or (self.save_from and not self.is_async)
        if is_known or start is None or length_s > DURATION_MAX_S:
            return ()
        end = start + timedelta(seconds=length_s)
        self.progress.block(start, end)
        return (Event("phase", end, phase="ckpt_save", dur_s=length_s),)

    def _datetime(self, what: str, at: datetime) -> Iterable[Event]:
        """Return the events of a printed time of start-up or end."""
        events: list[Event] = []
        if what.startswith("exiting program"):
            if "SIGTERM" in what:
                events.append(Event("failure", at, kind="preempted", msg=what))
            return (*events, Event("job.end", at))
        if what == "after megatron is initialized":
            log_interval = self.progress.log_interval
            self.progress, self.save_from = Progress(log_interval=log_interval), None
            self.save_step = None
            self.consumed = None
            init_s, self.init_s = self.init_s or 0.0, None
            init_s = init_s if init_s <= DURATION_MAX_S else 0.0  # clocks of nodes differ
            events.append(Event("job.start", at - timedelta(seconds=init_s)))
            if init_s:
                events.append(Event("phase", at, phase="init", dur_s=init_s))
            events.append(Event("phase.start", at, phase="init"))
        elif what == "before the start of training step":
            events.append(Event("phase.end", at, phase="init"))
        elif what.startswith("after model") and self.restore_s is not None:
            # the checkpoint is loaded last when the model is set up
            events.append(Event("phase", at, phase="restore", dur_s=self.restore_s))
            self.restore_s = None
        self.progress.begin(self.progress.step, at)
        return events


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise FieldError(f"{text!r} is not a number") from None

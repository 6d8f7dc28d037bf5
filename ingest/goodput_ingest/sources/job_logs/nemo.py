"""NeMo (lightning/pytorch/callbacks/progress_printer.py, utils/callbacks/dist_ckpt_io.py).

Training epoch 0, iteration 119/4999 | lr: 3e-05 | ... | train_step_timing in s: 4.021

An iteration's line carries no moment; without a collector's label its steps are laid out between
the saves, whose start is printed in epoch seconds. Iterations count from 0 here: iteration 119 is
step 120. A save is durable when the log reports it saved, not when it was scheduled.
"""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.job_logs.events import PLACED, Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.loss import loss_of
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.progress import STEPS_MAX, Progress, with_amounts

ITERATION = re.compile(
    r"Training epoch \d+, iteration \d{1,12}/\d+ \|.*\bglobal_step: (?P<step>\d{1,12}) \|"
)
FIELD = re.compile(
    r"\| (global_batch_size|train_step_timing in s|TFLOPS_per_GPU): "
    r"(\d{1,12}(?:\.\d{1,12})?)(?=\s|$)"
)
SPAN = re.compile(
    r"Global Checkpoint (?P<what>Save|Load) : Rank ?: \d+ : (?:Iteration: (?P<step>\d{1,12}) : )?"
    r"(?:Start time ?: (?P<start>\d{9,11}(?:\.\d+)?)s : )?"
    r"(?:Save duration|Time spent in load_checkpoint): (?P<length>[\d.]{1,20})s"
)
PHASES = {"Save": "ckpt_save", "Load": "restore"}
STAMP = re.compile(r"\[NeMo [A-Z] (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ")
FINAL = re.compile(
    r"Async checkpoint save for step (?P<step>\d{1,12}) \(.*\) finalized successfully"
    r"|Successfully saved checkpoint from iteration\s+(?P<iteration>\d{1,12}) to "
)


class Nemo:
    """Iterations, saves and loads with their moments, and when a save became durable."""

    name: ClassVar[str] = "nemo"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"\[NeMo [A-Z] \d{4}-|train_step_timing in s: |Global Checkpoint (?:Save|Load) : Rank"
    )
    hints: ClassVar[tuple[str, ...]] = (
        "Training epoch",
        "Global Checkpoint",
        "finalized success",
        "Successfully saved",
    )
    reports_durability: ClassVar[bool] = True

    def __init__(self) -> None:
        """Begin with nothing known of the job."""
        self.progress = Progress()
        self.is_labelled = False
        self.amounts: dict[str, float | None] = {}  # of a step, by the last line
        # steps before any moment, the last of them; of those without a length the last one
        self.undated: deque[Event] = deque(maxlen=STEPS_MAX)
        self.last_undated: Event | None = None

    @property
    def waiting(self) -> list[Event]:
        """Return the steps without a time that the next save may date."""
        if self.progress.at is not None:
            return []
        return [*self.undated, *([] if self.last_undated is None else [self.last_undated])]

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the events of a line."""
        if found := ITERATION.search(line.text):
            step = int(found["step"]) + 1
            return self._steps(step, dict(FIELD.findall(line.text)), line)
        if found := SPAN.search(line.text):
            return self._span(found, line, moments)
        if found := FINAL.search(line.text):
            stamp = STAMP.search(line.text)
            at = line.at if stamp is None else moments.of(line, stamp[1])
            step = int(found["step"]) if found["step"] else int(found["iteration"]) + 1
            return (Event("ckpt.durable", at, step=step),)
        return None

    def _steps(self, step: int, said: dict[str, str], line: Line) -> Iterable[Event]:
        """Return the steps up to this one; `train_step_timing in s` is the length of each."""
        at, each_s = line.at, _number(said, "train_step_timing in s")
        tflops = _number(said, "TFLOPS_per_GPU")
        self.amounts = {
            "samples": _number(said, "global_batch_size"),
            "gpu_flops": None if each_s is None or tflops is None else tflops * 1e12 * each_s,
        }
        self.is_labelled = self.is_labelled or at is not None
        if each_s is not None and each_s <= DURATION_MAX_S:
            if at is None and self.progress.at is None:
                done = Event("step", None, step=step, dur_s=each_s, loss=loss_of(line.text))
                self.undated += with_amounts([done], **self.amounts)
            return with_amounts(self.progress.mean(step, each_s, at), **self.amounts)
        if at is None:
            if "train_step_timing in s" in line.text:
                raise FieldError("train_step_timing in s is no length of a step")
            if self.progress.at is not None:
                return ()  # placed by the next save
            self.last_undated = Event("step", None, step=step)
            return (self.last_undated,)
        return with_amounts(self.progress.point(step, at), **self.amounts)

    def _span(self, found: re.Match[str], line: Line, moments: Moments) -> Iterable[Event]:
        """Return a save or load; one without a start ends when its line was written."""
        length_s = _seconds(found["length"])
        if length_s > DURATION_MAX_S:
            raise FieldError("a save or load of more than 31 days")
        length = timedelta(seconds=length_s)
        if found["start"] is not None:
            start = moments.epoch(_seconds(found["start"]))
            end = moments.keep(start + length)
        else:
            stamp = STAMP.search(line.text)
            said = line.at if stamp is None else moments.of(line, stamp[1])
            if said is None:
                return (Event("phase", None, phase=PHASES[found["what"]], dur_s=length_s),)
            start, end = said - length, said
        if found["what"] == "Load":
            self.progress.begin(None, end)
            return (Event("phase", end, phase=PHASES["Load"], dur_s=length_s),)
        events: list[Event] = []
        step = int(found["step"]) + 1 if found["step"] else None
        if step is not None and not self.is_labelled:
            if self.progress.at is None and self.undated and step == self.progress.step:
                events += self._until(start)
            elif step != self.progress.step:
                there = with_amounts(self.progress.point(step, start), **self.amounts)
                events += [replace(one, extra={**one.extra, "at": PLACED}) for one in there]
            self.progress.begin(step, end)
        else:
            self.progress.block(start, end)
        return (*events, Event("phase", end, phase=PHASES["Save"], dur_s=length_s))

    def _until(self, end: datetime) -> list[Event]:
        """Return the steps that lines without a time gave, one after the other up to a save."""
        events: list[Event] = []
        for step in reversed(self.undated):
            events.append(replace(step, at=end, extra={**step.extra, "at": PLACED}))
            end -= timedelta(seconds=step.dur_s or 0)
        self.undated.clear()
        return events[::-1]


def _number(said: dict[str, str], name: str) -> float | None:
    return float(said[name]) if name in said else None


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise FieldError(f"{text!r} is not a number") from None

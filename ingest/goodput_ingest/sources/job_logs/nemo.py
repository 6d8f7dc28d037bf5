"""NeMo (lightning/pytorch/callbacks/progress_printer.py, utils/callbacks/dist_ckpt_io.py).

Training epoch 0, iteration 119/4999 | lr: 3e-05 | ... | train_step_timing in s: 4.021

An iteration's line carries no moment; without a collector's label its steps are laid out between
the saves, whose start is printed in epoch seconds. Iterations count from 0 here: iteration 119 is
step 120. A save is durable when the log reports it saved, not when it was scheduled.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.progress import Progress, with_amounts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from goodput_ingest.sources.job_logs.lines import Line
    from goodput_ingest.sources.job_logs.moments import Moments

ITERATION = re.compile(
    r"Training epoch \d+, iteration \d{1,12}/\d+ \|.*\bglobal_step: (?P<step>\d{1,12}) \|"
)
BATCH = re.compile(r"\| global_batch_size: (\d{1,12}) \|")
SPAN = re.compile(
    r"Global Checkpoint (?P<what>Save|Load) : Rank ?: \d+ : (?:Iteration: (?P<step>\d{1,12}) : )?"
    r"Start time ?: (?P<start>\d{9,11}(?:\.\d+)?)s : "
    r"(?:Save duration|Time spent in load_checkpoint): (?P<length>[\d.]{1,20})s"
)
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
        self.samples: float | None = None

    def take(self, line: Line, moments: Moments) -> Iterable[Event]:
        """Return the events of a line."""
        if found := ITERATION.search(line.text):
            step = int(found["step"]) + 1
            batch = BATCH.search(line.text)
            self.samples = None if batch is None else float(batch[1])
            if line.at is None:
                # placed by the next save; until one comes there is no moment
                return () if self.progress.at is not None else (Event("step", None, step=step),)
            self.is_labelled = True
            return with_amounts(self.progress.point(step, line.at), samples=self.samples)
        if found := SPAN.search(line.text):
            return self._span(found, moments)
        if found := FINAL.search(line.text):
            stamp = STAMP.search(line.text)
            at = line.at if stamp is None else moments.of(line, stamp[1])
            step = int(found["step"]) if found["step"] else int(found["iteration"]) + 1
            return (Event("ckpt.durable", at, step=step),)
        return ()

    def _span(self, found: re.Match[str], moments: Moments) -> Iterable[Event]:
        length_s = _seconds(found["length"])
        if length_s > DURATION_MAX_S:
            raise FieldError("a save or load of more than 31 days")
        start = moments.epoch(_seconds(found["start"]))
        end = moments.keep(start + timedelta(seconds=length_s))
        if found["what"] == "Load":
            self.progress.begin(None, end)
            return (Event("phase", end, phase="restore", dur_s=length_s),)
        events: list[Event] = []
        step = int(found["step"]) + 1 if found["step"] else None
        if step is not None and not self.is_labelled:
            events += with_amounts(self.progress.point(step, start), samples=self.samples)
            self.progress.begin(step, end)
        else:
            self.progress.block(start, end)
        return (*events, Event("phase", end, phase="ckpt_save", dur_s=length_s))


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise FieldError(f"{text!r} is not a number") from None

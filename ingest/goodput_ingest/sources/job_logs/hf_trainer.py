"""Hugging Face Trainer, v4 and v5 (transformers/trainer_callback.py, trainer.py).

{'loss': '1.932', 'grad_norm': '0.8812', 'learning_rate': '4.5e-05', 'epoch': '0.12'}

A Python dictionary printed by rank 0: floats in v4, texts in v5, and neither moment nor step in it.
The moment comes from a collector's label, or from the progress bar that it is printed over, which
counts the seconds since the start of training; without both there is none. The step is the epoch's
share of the total that the trainer prints at its start (Unsloth `Total steps`), or without one that
of the bar; ms-swift prints it in the dictionary, and
scripts of diffusers have both step and loss in their bar alone. A save is logged at its start and
file by file, never when it is complete, but for the ones of accelerate.
"""

import ast
import math
import re
import warnings
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, ClassVar

from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments
from goodput_ingest.sources.job_logs.progress import Progress

DICT_MAX_CHARS = 4_000
LOGGED = re.compile(r"\{'(?:loss|eval_loss|eval_runtime|train_runtime)'[^{}]*\}")
STAMP = re.compile(r"\[[A-Z]+\|\S+?:\d+\] (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{1,6}) >> ?")
STEPS = "Total optimization steps"
RESUMED = re.compile(r"Continuing training from global step (\d{1,12})\s*$")
NUMBER = re.compile(r"\b(Num Epochs|Total (?:optimization )?steps) = ([\d,]{1,15})(?=\s|$)")
OF_SWIFT = re.compile(r"'global_step/max_steps': '(\d{1,12})/(\d{1,12})'")
SAVING = re.compile(r"Saving (?:model checkpoint|current state) to \S*checkpoint-(\d{1,12})\s*$")
SAVED = re.compile(r"Saved state to \S*checkpoint-(\d{1,12})\s*$")
BAR = re.compile(r"\|\s*(?P<step>\d{1,12})/(?P<steps>\d{1,12}) \[(?P<clock>\d{1,6}(?::\d\d){1,2})<")
PART = re.compile(r"\b(?:saved|Saved) in \S*checkpoint-(\d{1,12})/")


class HfTrainer:
    """Loss and evaluation dictionaries, saves, the totals printed at the start."""

    name: ClassVar[str] = "hf-trainer"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"\*{5} Running training \*{5}|\{'loss': '?[\d.naif]+|\{'train_runtime': |\{'eval_loss': "
        rb"|Saving model checkpoint to "
    )
    hints: ClassVar[tuple[str, ...]] = (
        "{'loss'",
        "{'eval_",
        "{'train_runtime'",
        "Running training *****",
        "Num Epochs =",
        "Total optimization steps =",
        "Total steps =",
        "Continuing training from global step ",
        "checkpoint-",
        "it/s",
        "s/it",
    )
    reports_durability: ClassVar[bool] = False

    def __init__(self) -> None:
        """Begin with nothing known of the job."""
        self.progress = Progress()
        self.totals: dict[str, int] = {}
        self.bar: re.Match[str] | None = None  # the last one
        self.save_from: tuple[int, datetime] | None = None
        self.started: datetime | None = None

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the events of a line."""
        self.bar = BAR.search(line.bar or line.text) or self.bar
        if found := LOGGED.search(line.text):
            # a loss that is NaN is no number, but its step was completed
            said, bar = _numbers(found[0]), self._bar(line.bar)
            if "train_runtime" in said:
                return self._ended(said["train_runtime"], line.at, bar)
            at = line.at or (bar and bar[1])
            if (of_swift := OF_SWIFT.search(found[0])) and "'loss'" in found[0]:
                return self._point(int(of_swift[1]), at)
            return self._logged(said, at, is_step="'loss'" in found[0])
        if (line.at is None or "loss=" in line.text) and (bar := self._bar(line.text)):
            return self._point(bar[0], line.at or bar[1])
        stamp = STAMP.search(line.text)
        at = line.at if stamp is None else moments.of(line, stamp[1])
        if "Running training *****" in line.text:
            self.progress, self.totals, self.started = Progress(0, at), {}, at
            return (Event("job.start", at),)
        if resumed := RESUMED.search(line.text):
            self.progress.begin(int(resumed[1]), at or self.progress.at)
            return ()
        if numbers := NUMBER.findall(line.text):
            for name, number in numbers:
                of = name.replace("Total steps", STEPS)
                self.totals[of] = int(number.replace(",", "") or 0)
        elif saving := SAVING.search(line.text):
            self.save_from = None if at is None else (int(saving[1]), at)
            return self._point(int(saving[1]), at)
        elif (saved := SAVED.search(line.text)) and at is not None:
            step = int(saved[1])
            return (*self._saved_part(step, at), Event("ckpt.durable", at, step=step))
        elif (part := PART.search(line.text)) and at is not None:
            return self._saved_part(int(part[1]), at)
        else:
            return None
        return ()

    def _bar(self, text: str) -> tuple[int, datetime] | None:
        """Return the step and the moment of the bar of training: others have other totals."""
        found = BAR.search(text)
        if found is None or self.started is None:
            return None
        if int(found["steps"]) != self.totals.get(STEPS):
            return None
        seconds = 0
        for part in found["clock"].split(":"):
            seconds = seconds * 60 + int(part)
        return int(found["step"]), self.started + timedelta(seconds=seconds)

    def _ended(
        self, length_s: float, at: datetime | None, bar: tuple[int, datetime] | None
    ) -> Iterable[Event]:
        """Return the last steps and the end, where no label dates it by its seconds of training."""
        steps = self._point(*bar) if bar is not None and at is None else ()
        if at is None and self.started is not None and 0 <= length_s <= DURATION_MAX_S:
            at = self.started + timedelta(seconds=length_s)
        return (*steps, Event("job.end", at))

    def _logged(
        self, said: dict[str, float], at: datetime | None, *, is_step: bool
    ) -> Iterable[Event]:
        if "eval_runtime" in said:
            length_s = said["eval_runtime"]
            if not 0 <= length_s <= DURATION_MAX_S:
                raise FieldError("eval_runtime is out of range")
            return (Event("phase", at, phase="eval", dur_s=length_s),)
        total, epochs = self.totals.get(STEPS), self.totals.get("Num Epochs")
        epoch = said.get("epoch")
        if is_step and not total and self.bar is not None and at is not None:
            return self._point(int(self.bar["step"]), at)  # the dictionary is printed over its bar
        if not total or not epochs or epoch is None or not is_step:
            return (Event("metric", at, extra=said),)
        return self._point(round(epoch * total / epochs), at)

    def _point(self, step: int, at: datetime | None) -> Iterable[Event]:
        if at is None:
            return (Event("step", None, step=step),)
        if self.progress.step is not None and step == self.progress.step:
            return ()  # logged and saved at one step
        return self.progress.point(step, at)

    def _saved_part(self, step: int, at: datetime) -> Iterable[Event]:
        """Return the time since the save began, or since its last file, as blocking."""
        if self.save_from is None or self.save_from[0] != step or at <= self.save_from[1]:
            return ()
        start, self.save_from = self.save_from[1], (step, at)
        self.progress.block(start, at)
        return (Event("phase", at, phase="ckpt_save", dur_s=(at - start).total_seconds()),)


def _numbers(text: str) -> dict[str, float]:
    """Return the finite numbers of a printed dictionary, written as numbers or as texts."""
    try:
        with warnings.catch_warnings():  # Python prints some of what it cannot read, such as 1if
            warnings.simplefilter("error", SyntaxWarning)
            said: Any = ast.literal_eval(text.strip()) if len(text) <= DICT_MAX_CHARS else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise FieldError("the dictionary is cut or holds more than numbers") from None
    if not isinstance(said, dict):
        raise FieldError("the dictionary is too long")
    numbers: dict[str, float] = {}
    for name, value in said.items():
        try:
            number = float(value) if isinstance(value, int | float | str) else math.nan
        except (ValueError, OverflowError):
            continue
        if isinstance(name, str) and math.isfinite(number) and abs(number) < 1e15:
            numbers[name[:50]] = number
    return numbers

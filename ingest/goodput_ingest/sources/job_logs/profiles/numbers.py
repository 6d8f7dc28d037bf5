"""The number of a step since the job began, where a log counts by epoch or in samples."""

import math
import re
from datetime import datetime, timedelta

from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.job_logs.profiles.profile import LineForm

INTEGER_MAX_CHARS = 30
WHOLE = re.compile(r"(?P<whole>\d+)(?:\.(?P<fraction>\d+))?(?P<scale>[kKM]?)", re.ASCII)
LATE = timedelta(seconds=1)  # a bar counts whole seconds
SCALES = {"": 0, "K": 3, "M": 6}  # zeros

Values = dict[str, str]


class StepNumbers:
    """What is known of epochs and of the samples of a step, in one log.

    epoch: that of the last line, or of a line of its own. batch: samples of a step; 0: not known.
    """

    def __init__(self, *, is_inferred: bool) -> None:
        """Begin with nothing known; is_inferred: no known trainer counts, so that it is inferred.

        Then epochs count from 1 if the log begins with that one, steps from 0 if it begins with
        that; a number alone that falls to the first one is of the next epoch.
        """
        self.is_inferred = is_inferred
        self.epoch: int | None = None
        self.is_epoch_begun = False
        self.batch = 0
        self.first_epoch: int | None = None
        self.is_from_0: bool | None = None  # numbers of an epoch whose length is known
        self.is_of_job: bool | None = None  # they go on where the next epoch begins
        self.last_epoch = -1
        self.epochs: dict[int, tuple[int, int]] = {}  # steps before each, and its steps
        # of bars: steps of the one with the loss, of those before; when one was full and its steps
        self.bar, self.steps_of_bars = 0, 0
        self.full: tuple[datetime, int] | None = None
        # where the length of an epoch is not known: its first and last number, the fewest steps
        # between two lines, steps before each epoch
        self.first_number, self.last_number, self.gap = 1, 0, 0.0
        self.steps_before: dict[int, int] = {}

    def restart(self) -> None:
        """Begin another life of the job."""
        self.epoch, self.steps_before = None, {}

    def begin_epoch(self, epoch: int) -> None:
        """Take note that the steps that follow are of this epoch."""
        self.epoch, self.is_epoch_begun = epoch, True

    def is_other_bar(self, values: Values, *, has_loss: bool) -> bool:
        """Say whether a bar is of another length than the one with the loss: of a validation."""
        steps = integer(values, "steps_of_bar")
        self.bar = steps if has_loss else self.bar
        return self.bar not in (0, steps)

    def of(
        self, form: LineForm, values: Values, bar: tuple[datetime, datetime] | None = None
    ) -> int:
        """Return the number of a step, counted from what the form says is the first one.

        bar: since when and until when the progress bar of the line ran
        """
        if "samples_done" in values:
            return self._of_samples(form, values)
        number = integer(values, "step")
        if bar is not None and "steps_of_bar" in values:
            number = self._of_bars(number, integer(values, "steps_of_bar"), *bar)
        if "steps_of_epoch" in values:
            epoch = self._epoch_of(form, values)
            if self.is_from_0 is None:
                self.is_from_0 = self.is_inferred and number == 0
            if self.is_inferred and self.is_of_job is None and epoch > self.last_epoch >= 0:
                self.is_of_job = number > self.last_number
            before = self._before(epoch, integer(values, "steps_of_epoch"))
            self.last_epoch, self.last_number = epoch, number
            return (0 if self.is_of_job else before) + number + self.is_from_0
        if "epoch" in values:
            epoch = integer(values, "epoch")
        elif self.is_inferred:
            epoch = self._inferred_epoch(number)
        else:
            return number
        is_from_0 = self.first_number == 0
        if not self.steps_before:
            self.first_number, self.steps_before[epoch] = number, 0
            is_from_0 = number == 0
        elif epoch not in self.steps_before:
            before = self.steps_before.get(self.epoch or 0, 0)
            is_counted_on = number > self.last_number
            self.steps_before[epoch] = before + (not is_counted_on) * (self.last_number + is_from_0)
        self.epoch, self.last_number = epoch, number
        return self.steps_before[epoch] + number + is_from_0

    def _before(self, epoch: int, steps: int) -> int:
        """Return the steps before an epoch: those of epochs that the log has, others as long as it.

        In a loop of no known trainer lines of a validation may have another length.
        """
        if self.is_inferred:
            return epoch * steps
        before, _ = self.epochs.get(epoch, (None, 0))
        if before is None:
            last = epoch - 1 if epoch - 1 in self.epochs else self.last_epoch
            last = last if last < epoch else -1
            before = sum(self.epochs.get(last, (0, 0))) + (epoch - last - 1) * steps
        self.epochs[epoch] = before, steps
        return before

    def _of_bars(self, number: int, steps: int, since: datetime, at: datetime) -> int:
        """Return the number of a step since the first bar: one that was full is of an epoch."""
        if self.full is not None and since >= self.full[0] - LATE:
            self.steps_of_bars += self.full[1]
            self.full = None
        if number == steps:
            self.full = at, steps
        return self.steps_of_bars + number

    def _of_samples(self, form: LineForm, values: Values) -> int:
        """Return the number of a step whose epoch is counted in samples.

        The first line of an epoch has the samples of one step; in a loop of no known trainer, which
        may begin at 0, the samples between two lines count as a step.
        """
        done, epoch = integer(values, "samples_done"), self._epoch_of(form, values)
        if self.is_epoch_begun or self.is_inferred:
            self.batch = self.batch or done
        self.is_epoch_begun = False
        if not self.batch and done:
            raise FieldError("the log does not show how many samples a step has: no epoch begins")
        of_epoch = integer(values, "samples_of_epoch") / (self.batch or math.inf)
        steps = math.ceil(of_epoch) if self.is_inferred else math.floor(of_epoch)
        return epoch * steps + (round(done / self.batch) if self.batch else 0)

    def _epoch_of(self, form: LineForm, values: Values) -> int:
        """Return the epoch of a line, counted from 0."""
        epoch = self.epoch
        if "epoch" in values:
            epoch = integer(values, "epoch")
        first: int = form.first_epoch
        if self.is_inferred:
            if self.first_epoch is None:
                self.first_epoch = int(epoch == 1)
            first = self.first_epoch
        return max((first if epoch is None else epoch) - first, 0)

    def _inferred_epoch(self, number: int) -> int:
        """Return the epoch of a number alone: one about as low as the first begins another."""
        if self.epoch is None:
            return 0
        is_again = number < self.last_number and number <= self.first_number + self.gap
        if number > self.last_number:
            self.gap = min(self.gap or math.inf, number - self.last_number)
        return self.epoch + is_again


def integer(values: Values, name: str) -> int:
    """Return a whole number such as 8,214 or 2.60k; a pattern of a site may find anything."""
    text = values[name]
    if len(text) <= INTEGER_MAX_CHARS and (found := WHOLE.fullmatch(text.replace(",", ""))):
        thousands = SCALES[found["scale"].upper()]
        fraction = (found["fraction"] or "").ljust(thousands, "0")
        if not fraction[thousands:].strip("0"):
            return int(found["whole"] + fraction[:thousands])
    raise FieldError(f"{name} is {text[:40]!r}, which is no whole number")

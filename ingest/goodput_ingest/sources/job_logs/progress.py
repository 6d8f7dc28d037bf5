"""Interpolates steps between the ones that a log prints.

Logs print every n-th step and the mean of the n, or only that the n-th is done. The steps between
two such lines share the time between them, less what the job was blocked in meanwhile: a save
there lengthens the step that it fell into, and the ledger gives that time to the save.

Times printed in whole seconds say in which second a step ended: there it ends where its printed
length puts it, and steps follow each other without gaps of a part of a second.

Where all ranks write into one log without labels, each step is printed once a rank. To do a step
again takes at least as long as the step: the same number sooner is another rank's line.
"""

import math
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from goodput_ingest.sources.job_logs.events import Event

STEPS_MAX = 2_000  # of one line; more become one event
BLOCKS_MAX = 1_000
SHORTEST_STEP = timedelta(seconds=1)  # assumed until the length of one is known
SECOND, INSTANT = timedelta(seconds=1), timedelta(milliseconds=1)
Span = tuple["datetime", "datetime"]


@dataclass
class Progress:
    """Progress of the gang in one life: its last finished step and the time of it.

    log_interval: number of steps between log lines, where the log shows it.
    length: of the last step; None: not known yet.
    is_whole: all times so far are whole seconds.
    """

    step: int | None = None
    at: datetime | None = None
    log_interval: int | None = None
    length: timedelta | None = None
    blocks: list[Span] = field(default_factory=list)
    is_whole: bool = True

    def begin(self, step: int | None, at: datetime | None) -> None:
        """Record that work starts, or continues, after `step` at `at`."""
        self.step, self.at, self.blocks = step, at, []

    def block(self, start: datetime, end: datetime) -> None:
        """Take note that the job did something else from `start` to `end`."""
        if end > start and len(self.blocks) < BLOCKS_MAX:
            self.blocks.append((start, end))

    def not_before(self, step: int, mean_s: float, moment: datetime) -> None:
        """Begin so late that steps up to `step` are not done before `moment`, printed before them.

        Where no step is known yet, they begin at that moment.
        """
        if self.at is None:
            self.at = moment
        elif self.step is None or step > self.step:
            length = timedelta(seconds=self._count(step, mean_s, moment) * mean_s)
            self.at = max(self.at, moment - length)

    def point(self, step: int, at: datetime) -> list[Event]:
        """Return the steps up to `step`, which was finished at `at`.

        Without a finished step before it, how long it took is not known.
        """
        if self._is_repeat(step, at):
            return []
        if step == 0:  # nothing is finished yet
            self.begin(step, at)
            return []
        done, since = self.step, self.at
        if done is not None and since is not None and step > done and at > since:
            events = _laid_out(done + 1, step, since, at, self.blocks)
            self.length = (at - since) / (step - done)
        else:
            events = [Event("step", at, step=step)]
        self.begin(step, at)
        return events

    def mean(self, step: int, mean_s: float, at: datetime | None) -> list[Event]:
        """Return the steps up to `step` whose mean length is logged; `at` is the line's time.

        Without one, they follow the step before them; nothing known before them either: no moment.
        """
        if self._is_repeat(step, at):
            return []
        count = self._count(step, mean_s, at)
        length = timedelta(seconds=count * mean_s)
        if at is not None:
            self.is_whole = self.is_whole and at.microsecond == 0
            follows = self.step is None or step > self.step
            if self.at is not None and follows and self.step is not None:
                at = self.in_second(at, _after(self.at, length, self.blocks))
            start = _before(at, length, self.blocks)
            if self.at is not None and follows:
                start = max(start, min(self.at, at))
        elif self.at is not None:
            start, at = self.at, _after(self.at, length, self.blocks)
        else:
            self.step = step
            return [Event("step", None, step=step)]
        events = _laid_out(step - count + 1, step, start, at, self.blocks)
        self.begin(step, at)
        self.length = timedelta(seconds=mean_s)
        return events

    def in_second(self, printed: datetime, moment: datetime | None) -> datetime:
        """Return a moment as near as the printed second allows, where seconds are printed whole."""
        if moment is None or not self.is_whole or printed.microsecond:
            return printed
        return min(max(printed, moment), printed + SECOND - INSTANT)

    def _is_repeat(self, step: int, at: datetime | None) -> bool:
        """Say whether another rank prints what one has printed: sooner than it could be redone."""
        if self.step is None or self.at is None:
            return False
        if step == self.step:
            return at is None or at < self.at + (self.length or SHORTEST_STEP)
        return step < self.step and at is not None and at < self.at

    def _count(self, step: int, mean_s: float, at: datetime | None) -> int:
        """Return how many steps a line covers: those since the previous line.

        Of the first line all up to its step, where the time since the start of training has room
        for them: a run that went on did not do so many.
        """
        if self.step is not None and step > self.step:
            return step - self.step
        interval = self.log_interval or 1
        if self.log_interval is None and self.step is None and self.at and at and mean_s > 0:
            ran = at - self.at - sum((_cut(b, self.at, at) for b in self.blocks), timedelta(0))
            interval = step if step * mean_s <= (ran + SECOND).total_seconds() else 1
        return max(1, min(interval, step))


def with_amounts(
    events: list[Event], *, mfu_ratio: float | None = None, **of_a_step: float | None
) -> list[Event]:
    """Return the steps of a line with what each did; an event of many steps gets as many times.

    of_a_step: `samples`, `gpu_tokens`, `gpu_flops`; None: the line does not say.
    """
    steps = events[0].extra.get("mean_of", 1) if len(events) == 1 else 1
    amounts: dict[str, Any] = {
        name: amount * steps
        for name, amount in of_a_step.items()
        if amount is not None and 0 <= amount < math.inf
    }
    return [replace(event, mfu_ratio=mfu_ratio, **amounts) for event in events]


def _laid_out(
    first: int, last: int, start: datetime, end: datetime, blocks: list[Span]
) -> list[Event]:
    """Return steps `first` to `last` of one length of work each in `[start, end)`."""
    count = last - first + 1
    extra = {"mean_of": count} if count > 1 else {}
    if count > STEPS_MAX:
        return [Event("step", end, step=last, dur_s=(end - start).total_seconds(), extra=extra)]
    work = (end - start) - sum((_cut(b, start, end) for b in blocks), timedelta(0))
    events, since = [], start
    for number in range(1, count + 1):
        at = end if number == count else _after(start, work * number / count, blocks)
        at = max(since, min(at, end))
        step = first + number - 1
        events.append(Event("step", at, step, (at - since).total_seconds(), extra=extra))
        since = at
    return events


def _cut(block: Span, start: datetime, end: datetime) -> timedelta:
    return max(min(block[1], end) - max(block[0], start), timedelta(0))


def _after(start: datetime, work: timedelta, blocks: list[Span]) -> datetime:
    """Return when `work` that begins at `start` is done, around the blocks."""
    at = start + work
    for block_start, block_end in sorted(blocks):
        if block_end > start and block_start < at:
            at += block_end - max(block_start, start)
    return at


def _before(end: datetime, work: timedelta, blocks: list[Span]) -> datetime:
    """Return when `work` that is done at `end` began, around the blocks."""
    at = end - work
    for block_start, block_end in sorted(blocks, reverse=True):
        if block_start < end and block_end > at:
            at -= min(block_end, end) - block_start
    return at

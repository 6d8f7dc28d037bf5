"""One life of a gang: start-up, steps with saves between them, and how it ends. Times in ms.

Steps are arrays, an entry for all that one event reports; everything between them is a handful of
intervals.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from goodput_synthetic.fleet.fleet import Ints
from goodput_synthetic.fleet.habits import SECOND, Habits

WARM_STEPS = 12  # no trouble in the first steps: start-up is inferred from them
LATE_SHARE, LATE_MOST = 0.2, 0.08  # of steps, a rank that is late; of a step, the waits for it


@dataclass(frozen=True)
class Steps:
    """Steps of a gang as they are reported: when they ran and what they lost inside.

    number: of the last step of an event, which may report several; slow: what the held-up GPUs
    cost; comm, wait: exposed communication and waiting as measured.
    """

    number: Ints
    start: Ints
    end: Ints
    data: Ints
    slow: Ints
    comm: Ints
    wait: Ints

    def __len__(self) -> int:
        return len(self.number)

    def first(self, count: int) -> Steps:
        """Return the first `count` steps."""
        return Steps(*(getattr(self, name)[:count] for name in self.__dataclass_fields__))


@dataclass
class Attempt:
    """One life of the gang's processes.

    begin, end: its part of the hold; outcome: ok, failed, limit or running; phases: (name, start,
    end) as the job declares them; gaps: (start, end) of idleness it does not declare; durables:
    (step, when the checkpoint was complete); died: when the processes stopped working.
    """

    number: int
    begin: int
    end: int
    outcome: str
    job_start: int
    steps: Steps
    compile_ms: int = 0
    phases: list[tuple[str, int, int]] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    durables: list[tuple[int, int]] = field(default_factory=list)
    failure: tuple[int, str, str] | None = None
    died: int = 0

    @property
    def work_end(self) -> int:
        """Return when the last completed step ended; without one, when work never began."""
        return int(self.steps.end[-1]) if len(self.steps) else self.begin

    @property
    def durable_step(self) -> int:
        """Return the last step that a complete checkpoint kept, 0 for none."""
        return max((step for step, _ in self.durables), default=0)


@dataclass(frozen=True)
class Ending:
    """How an attempt ends: its outcome, and how long before its end no step completes any more."""

    outcome: str
    tail_ms: int
    failure: tuple[str, str] | None = None
    has_steps: bool = True


def no_steps() -> Steps:
    """Return no steps."""
    return Steps(*(np.zeros(0, dtype=np.int64) for _ in Steps.__dataclass_fields__))


def train(
    habits: Habits, number: int, begin: int, end: int, resume: int, ending: Ending,
    rng: np.random.Generator,
) -> Attempt:  # fmt: skip
    """Return an attempt within `[begin, end)` that goes on with step `resume`."""
    job_start = min(begin + habits.prolog_ms, end - 1)
    ready = job_start + habits.init_ms
    phases = [("init", job_start, ready)]
    if resume > 1:
        phases.append(("restore", ready, ready + habits.restore_ms))
        ready += habits.restore_ms
    attempt = Attempt(number, begin, end, ending.outcome, job_start, no_steps(), died=end)
    until = end - ending.tail_ms
    if ending.has_steps and ready + habits.compile_ms + habits.line_ms < until:
        planned = _plan_steps(habits, ready, until, resume, rng)
        after = _after_steps(habits, planned.number)
        shift = np.concatenate(([0], np.cumsum(after)[:-1]))
        length = planned.end - planned.start
        ends = ready + np.cumsum(length) + shift
        done = int(np.searchsorted(ends, until, side="right"))
        steps = Steps(
            planned.number, ends - length, ends, planned.data, planned.slow, planned.comm,
            planned.wait,
        )  # fmt: skip
        attempt.steps = steps.first(done)
        attempt.compile_ms = habits.compile_ms
        _save(attempt, habits, phases)
    attempt.phases = [p for p in phases if p[2] < end]
    if ending.failure is not None:
        attempt.failure = (max(job_start, end - 4 * SECOND), *ending.failure)
    return attempt


def _plan_steps(
    habits: Habits, ready: int, until: int, resume: int, rng: np.random.Generator
) -> Steps:
    """Return more steps than fit, each with its length; starts are not placed yet."""
    line_ms, together = habits.line_ms, habits.log_every
    count = (until - ready) // max(1, int(line_ms * 0.93)) + 2
    place = np.arange(count)
    number = resume - 1 + together * (1 + place)
    base = line_ms * (1 + habits.noise / np.sqrt(together) * rng.standard_normal(count))
    base = np.maximum(base, line_ms * 0.9).round()
    data = rng.integers(1, 7, count)  # what prefetching leaves
    if habits.stalls:
        is_stalled = (rng.random(count) < habits.stalls) & (place > WARM_STEPS)
        stall = line_ms * habits.stall_share * rng.uniform(0.6, 1.4, count)
        data = np.where(is_stalled, stall.astype(np.int64), data)
    slow = np.zeros(count, dtype=np.int64)
    for first, last in habits.slow_windows:
        inside = (place >= max(WARM_STEPS, first * count)) & (place < last * count)
        slow[inside] = int(line_ms * habits.slow_share)
    comm, wait = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    if habits.is_measured:
        usual = line_ms * habits.comm_share
        comm = (usual * rng.uniform(0.75, 1.25, count)).astype(np.int64)
        most = line_ms * LATE_MOST if habits.comm_share else 0
        is_late = rng.random(count) < LATE_SHARE
        wait = (most * rng.uniform(0.2, 1, count) * is_late).astype(np.int64)
    length = base.astype(np.int64) + data + slow
    length[0] = line_ms + habits.compile_ms
    data[0] = comm[0] = wait[0] = 0
    return Steps(number, np.zeros(count, dtype=np.int64), length, data, slow, comm, wait)


def _after_steps(habits: Habits, number: Ints) -> Ints:
    """Return how long after each step the next one waits for saves, evaluations and gaps."""
    is_save = number % habits.save_every == 0
    after = np.where(is_save, habits.save_ms + habits.gap_ms, 0)
    if habits.eval_every:
        is_eval = is_save & (number // habits.save_every % habits.eval_every == 0)
        after = after + np.where(is_eval, habits.eval_ms, 0)
    return after


def _save(attempt: Attempt, habits: Habits, phases: list[tuple[str, int, int]]) -> None:
    """Add what comes between steps, as far as it ended within the attempt."""
    steps, limit = attempt.steps, attempt.end - SECOND
    saved = np.flatnonzero(steps.number % habits.save_every == 0)
    for k in saved:
        step, at = int(steps.number[k]), int(steps.end[k])
        is_last = k == len(steps) - 1
        if at + habits.save_ms > limit:
            break
        phases.append(("ckpt_save", at, at + habits.save_ms))
        at += habits.save_ms
        if at + habits.async_ms <= limit:
            attempt.durables.append((step, at + habits.async_ms))
        if is_last:
            break
        if habits.eval_every and step // habits.save_every % habits.eval_every == 0:
            phases.append(("eval", at, at + habits.eval_ms))
            at += habits.eval_ms
        if habits.gap_ms:
            attempt.gaps.append((at, at + habits.gap_ms))

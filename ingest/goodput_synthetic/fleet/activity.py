"""What the GPUs of a job run were doing at any moment, as their counters see it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodput_synthetic.fleet.fleet import POWER_LIMIT_W, Ints
from goodput_synthetic.fleet.lives import Life
from goodput_synthetic.fleet.training import Attempt

# free: nobody holds it; quiet: a process that does nothing; hang: spinning in a collective
STATES = (
    *("free", "quiet", "empty", "restore", "compile", "step", "starved", "throttled", "save"),
    *("eval", "hang", "light"),
)
STATE = {name: i for i, name in enumerate(STATES)}
SHIFT = 2**42  # keys are number * SHIFT + milliseconds


@dataclass(frozen=True)
class Activity:
    """Look-up tables, sorted: who holds a unit from when to when, and what each life does then.

    place: of the unit in its gang. cap_w: power limit of its GPUs while it runs. begin: ms; growth:
    of the memory in use, bytes a ms.
    """

    hold_key: Ints
    hold_end: Ints
    hold_life: Ints
    hold_place: Ints
    change_key: Ints
    change_state: Ints
    level: npt.NDArray[np.float64]
    cap_w: npt.NDArray[np.float64]
    has_spares: npt.NDArray[np.bool_]
    is_special: npt.NDArray[np.bool_]
    begin: Ints
    growth: npt.NDArray[np.float64]

    def at(self, unit: Ints, when: Ints) -> tuple[Ints, Ints, npt.NDArray[np.bool_], Ints]:
        """Return life (-1: free), place in the gang, whether it is special, and state."""
        hold = np.searchsorted(self.hold_key, unit * SHIFT + when, side="right") - 1
        is_held = (hold >= 0) & (self.hold_key[hold] // SHIFT == unit)
        is_held &= when < self.hold_end[hold]
        life = np.where(is_held, self.hold_life[hold], -1)
        state = np.zeros(len(unit), dtype=np.int64)
        held = np.flatnonzero(is_held)
        change = np.searchsorted(self.change_key, life[held] * SHIFT + when[held], side="right")
        state[held] = self.change_state[change - 1]
        is_special = self.is_special[hold] & is_held
        state[is_special & self.has_spares[life]] = STATE["quiet"]
        return life, self.hold_place[hold], is_special, state


def activity_of(lives: list[Life]) -> Activity:
    """Return the look-up tables of all lives."""
    sizes = [len(life.run.units) for life in lives]
    unit = np.concatenate([np.array(life.run.units, dtype=np.int64) for life in lives])
    place = np.concatenate([np.arange(n) for n in sizes])
    begin = np.repeat([life.begin for life in lives], sizes)
    order = np.argsort(unit * SHIFT + begin, kind="stable")
    is_special = np.concatenate(
        [np.isin(np.arange(n), life.special) for n, life in zip(sizes, lives, strict=True)]
    )
    keys: list[int] = []
    states: list[int] = []
    for i, life in enumerate(lives):
        changes = _changes(life)
        changes.sort(key=lambda change: change[0])
        keys += [i * SHIFT + when for when, _ in changes]
        states += [STATE[name] for _, name in changes]
    return Activity(
        hold_key=(unit * SHIFT + begin)[order],
        hold_end=np.repeat([life.end for life in lives], sizes)[order],
        hold_life=np.repeat(np.arange(len(lives)), sizes)[order],
        hold_place=place[order],
        change_key=np.array(keys, dtype=np.int64),
        change_state=np.array(states, dtype=np.int64),
        level=np.array([life.habits.level for life in lives]),
        cap_w=np.array([life.request.options.get("cap_w", POWER_LIMIT_W) for life in lives]),
        has_spares=np.array([life.request.kind == "spare" for life in lives]),
        is_special=is_special[order],
        begin=np.array([life.begin for life in lives], dtype=np.int64),
        growth=np.array(
            [life.request.options.get("growth_gb_per_h", 0) / 3.6e-3 for life in lives]
        ),
    )


def _changes(life: Life) -> list[tuple[int, str]]:
    """Return from when on the gang did what."""
    nothing = "empty" if life.request.kind == "unused" else "quiet"
    busy = "light" if life.request.kind == "notebook" else "step"
    found = [(start, busy if is_busy else nothing) for start, _, is_busy in life.stretches]
    for attempt in life.attempts:
        found += _of_attempt(life, attempt)
    return found


def _of_attempt(life: Life, attempt: Attempt) -> list[tuple[int, str]]:
    steps = attempt.steps
    usual = "starved" if life.habits.stalls else "step"
    found = [(attempt.begin, "quiet")]
    between: list[tuple[int, int, str]] = []
    ready = attempt.job_start
    for name, start, end in attempt.phases:
        if name == "restore":
            found.append((start, "restore"))
        elif name != "init":
            between.append((start, end, "save" if name == "ckpt_save" else "eval"))
        ready = max(ready, end) if name in ("init", "restore") else ready
    between += [(start, end, "quiet") for start, end in attempt.gaps]
    if not len(steps):
        if ready < attempt.end:
            found.append((ready, "compile"))
        return found
    first = int(steps.start[0])
    found += [(first, "compile"), (first + attempt.compile_ms, usual)]
    for start, end, name in sorted(between):
        if found[-1][0] == start:
            found.pop()
        found += [(start, name), (end, usual)]
    slow = np.flatnonzero(steps.slow > 0)
    if life.request.kind == "throttled" and len(slow):
        found = _with_throttling(found, steps.start[slow], steps.end[slow], usual)
    last = max([attempt.work_end, *(end for _, end, _ in between)])
    return [change for change in found if change[0] < last] + _tail(life, attempt, last)


def _with_throttling(
    found: list[tuple[int, str]], start: Ints, end: Ints, usual: str
) -> list[tuple[int, str]]:
    """Return the changes with slow steps marked; what lies between two of them stays as it is."""
    marks = [(int(a), "throttled") for a in start]
    starts = {a for a, _ in marks}
    taken = {when for when, name in found if name != usual}
    back = [(int(b), usual) for b in end if int(b) not in starts and int(b) not in taken]
    return [c for c in found if c[0] not in starts] + marks + back


def _tail(life: Life, attempt: Attempt, last: int) -> list[tuple[int, str]]:
    if "hung_s" in life.request.options:
        return [(last, "hang")]
    if attempt.outcome in ("running", "limit"):
        return [(last, "step")]
    if attempt.outcome == "ok":
        return [(last, "quiet")]
    if life.request.kind == "hang" and attempt.failure is not None:
        return [(last, "hang")]
    if life.run.died_s is not None and attempt is life.attempts[-1]:
        return [(last, "step"), (max(last, attempt.died), "hang")]
    return [(last, "quiet")]

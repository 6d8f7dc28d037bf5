"""Each job run's time by category, for its gang: the accounting rules applied to the plan."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from tests.fleets.categories import CODE

from goodput_synthetic.fleet.fleet import Ints
from goodput_synthetic.fleet.lives import Life, rank_waits
from goodput_synthetic.fleet.scrapes import Scrapes
from goodput_synthetic.fleet.training import Attempt

EVERYBODY, SPECIAL, OTHERS, FIRST_RANK = 0, 1, 2, 3  # a rank's own pieces: FIRST_RANK + rank
SPLIT_MIN_MS = 10  # waits that are shorter stay in their step
TEARDOWN_STEPS = 3
PHASES = {
    "init": "startup",
    "restore": "restore",
    "ckpt_save": "checkpoint_save",
    "eval": "other_declared",
}


class Book:
    """Pieces of time by whose GPUs they are of: columns start, end and category."""

    def __init__(self) -> None:
        self.parts: dict[int, list[Ints]] = defaultdict(list)

    def add(self, start: int, end: int, category: str) -> None:
        """Add one piece of everybody's time."""
        self.add_all(np.array([start]), np.array([end]), category)

    def add_all(self, start: Ints, end: Ints, category: str, who: int = EVERYBODY) -> None:
        """Add pieces of one category; empty ones are left out."""
        found = end > start
        code = np.full(int(found.sum()), CODE[category])
        columns = (start[found], end[found], code)
        self.parts[who].append(np.stack(columns, axis=1).astype(np.int64))

    def pages(self) -> dict[int, Ints]:
        """Return the pieces, a row each, by whose they are."""
        return {who: np.concatenate(parts) for who, parts in self.parts.items()}


@dataclass(frozen=True)
class Saves:
    """What shows whether the work of an attempt was kept.

    unconfirmed_jobs: saved and never reported a complete checkpoint, in no life.
    followed_attempts: identities of those whose job made steps in a later one.
    """

    unconfirmed_jobs: set[int]
    followed_attempts: set[int]


def saves(lives: list[Life]) -> Saves:
    """Return what the lives of each job, in order, show of its checkpoints."""
    stepped: set[int] = set()
    followed: set[int] = set()
    saved: set[int] = set()
    reported: set[int] = set()
    for life in reversed(lives):
        job_id = life.request.job_id
        for attempt in reversed(life.attempts):
            if job_id in stepped:
                followed.add(id(attempt))
            if len(attempt.steps):
                stepped.add(job_id)
            if any(name == "ckpt_save" for name, _, _ in attempt.phases):
                saved.add(job_id)
            if attempt.durables and life.habits.is_confirmed:
                reported.add(job_id)
    return Saves(saved - reported, followed)


def book(life: Life, scrapes: Scrapes, seen: Saves) -> dict[int, Ints]:
    """Return where the time of a job run went, as `Book.pages`."""
    pages = Book()
    for start, end, is_busy in life.stretches:
        is_suspended = life.suspended and start >= life.end - life.suspended
        if is_suspended and life.run.end_s is not None:
            pages.add(start, end, "suspended")
        else:
            pages.add(start, end, "telemetry busy" if is_busy else "telemetry idle")
    for attempt in life.attempts:
        if life.request.reports:
            _reported(pages, life, attempt, scrapes, seen)
        else:  # the GPUs are busy, and short pauses do not count
            pages.add(attempt.begin, attempt.end, "telemetry busy")
    return pages.pages()


def _reported(pages: Book, life: Life, attempt: Attempt, scrapes: Scrapes, seen: Saves) -> None:
    steps = attempt.steps
    reported_durable = attempt.durable_step if life.habits.is_confirmed else 0
    is_of_unconfirmed_job = life.request.job_id in seen.unconfirmed_jobs
    is_unconfirmed = is_of_unconfirmed_job and id(attempt) not in seen.followed_attempts
    is_bad = attempt.outcome == "failed" or (attempt.outcome == "limit" and len(steps) > 0)
    kept = int((steps.number <= reported_durable).sum())
    if is_bad and kept == 0 and not (is_unconfirmed and len(steps)):
        pages.add(attempt.begin, attempt.end, "failed_without_progress")
        return
    pages.add(attempt.begin, attempt.job_start, "startup")
    for name, start, end in attempt.phases:
        pages.add(start, end, PHASES[name])
    for start, end in attempt.gaps:
        inside = start + scrapes.interval_ms, end - scrapes.interval_ms
        is_seen = any(_is_seen(scrapes, node, *inside) for node in life.run.nodes)
        pages.add(start, end, "idle_held" if is_seen else "busy_unclassified")
    last = max([attempt.job_start, attempt.work_end, *(p[2] for p in attempt.phases)])
    if len(steps):
        _steps(pages, life, attempt, reported_durable, is_unconfirmed=is_unconfirmed)
        _end(pages, attempt, last)
    else:
        pages.add(last, attempt.end, "telemetry busy")


def _is_seen(scrapes: Scrapes, node: int, start: int, end: int) -> bool:
    """Say whether a reading with all its fields lies within `[start, end]`."""
    first, last = np.searchsorted(scrapes.at[node], (start, end + 1))
    found = scrapes.is_read[node, first:last] & scrapes.is_profiled[node, first:last]
    return bool(found.any())


def _steps(
    pages: Book, life: Life, attempt: Attempt, reported_durable: int, *, is_unconfirmed: bool
) -> None:
    steps, base = attempt.steps, "productive" if life.habits.is_measured else "step_unsplit"
    start = steps.start.copy()
    pages.add(int(start[0]), int(start[0]) + attempt.compile_ms, "startup")
    start[0] += attempt.compile_ms
    is_kept = (steps.number <= reported_durable) | (attempt.outcome == "ok")
    lost = "at_risk" if attempt.outcome == "running" else "lost_work"
    if is_unconfirmed and attempt.outcome in ("failed", "limit"):
        pages.add_all(*_joined(start, steps.end), "at_risk")
        return
    pages.add_all(*_joined(start[~is_kept], steps.end[~is_kept]), lost)
    at, end = start[is_kept], steps.end[is_kept]
    data = np.where(steps.data >= SPLIT_MIN_MS, steps.data, 0)[is_kept]
    pages.add_all(at, at + data, "data_stall")
    at = at + data
    slow = steps.slow[is_kept]
    if slow.any():
        own = "throttled" if life.request.kind == "throttled" else base
        pages.add_all(at, at + slow, own, SPECIAL)
        pages.add_all(at, at + slow, "straggler_wait", OTHERS)
        at = at + slow
    comm = steps.comm[is_kept]
    is_own = life.habits.is_measured and life.request.reports == "all"
    for rank in range(len(life.run.units) if is_own else 1):
        who = FIRST_RANK + rank if is_own else EVERYBODY
        wait = rank_waits(life, attempt, rank)[is_kept]
        pages.add_all(at, at + wait, "straggler_wait", who)
        pages.add_all(at + wait, at + wait + comm, "exposed_comm", who)
        pages.add_all(*_joined(at + wait + comm, end), base, who)


def _joined(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return intervals with those joined that follow on each other."""
    if not len(start):
        return start, end
    is_new = np.append(True, start[1:] != end[:-1])
    is_last = np.append(is_new[1:], True)
    return start[is_new], end[is_last]


def _end(pages: Book, attempt: Attempt, last: int) -> None:
    """Book what came after the last step and the save behind it."""
    if attempt.outcome == "running":
        pages.add(last, attempt.end, "telemetry busy")
    elif attempt.outcome == "ok":
        pages.add(last, attempt.end, "teardown")
    elif attempt.outcome == "failed":
        pages.add(last, attempt.end, "fault_stall")
    else:
        length = np.median(attempt.steps.end - attempt.steps.start)
        until = attempt.work_end + int(TEARDOWN_STEPS * length)
        pages.add(last, min(until, attempt.end), "teardown")
        pages.add(max(last, until), attempt.end, "fault_stall")

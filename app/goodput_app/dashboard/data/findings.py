"""Findings and fixes: what needs a person, what to do first, and what is lost now."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import polars as pl

from goodput_app import ranked
from goodput_app.access import rows
from goodput_app.dashboard.data import marts
from goodput_app.dashboard.data.kept import is_alike, is_refused
from goodput_app.process import evaluations, usage
from goodput_app.process.store import current_store
from goodput_queries.database import Store
from goodput_queries.scope import Scope

WAIT_S = 0.2  # small databases answer within it
TIMEOUT_S = 120.0  # no page waits for it
EVALUATIONS_KEPT = 32
FINDINGS_MAX = 10_000  # of an evaluation, which pages count and filter
FIXES_SHOWN = 200
EXECUTING_IDLE = """select coalesce(sum(idle_ms), 0)::bigint, coalesce(sum(held_ms), 0)::bigint
    from marts.executing_idle"""


@dataclass(frozen=True)
class Found:
    """Findings, the most severe and costly first, and fixes, what gives most back first.

    findings: rows of marts.findings, at most FINDINGS_MAX; fixes: of marts.fixes, at most
    FIXES_SHOWN; executing_idle: idle_ms and held_ms of marts.executing_idle, summed up;
    evaluated_at: when, in UTC
    """

    findings: pl.DataFrame
    fixes: pl.DataFrame
    executing_idle: tuple[int, int] = (0, 0)
    evaluated_at: datetime = field(default_factory=lambda: datetime.now(UTC).replace(tzinfo=None))


_pool = ThreadPoolExecutor(2, thread_name_prefix="goodput-findings")
_evaluations: dict[tuple[marts.State, Scope], Future[Found]] = {}
_lock = threading.Lock()


def known(scope: Scope) -> Found | None:
    """Return the findings of a scope, None while the first are evaluated; raises as the read does.

    They take longer than all the rest of a page, which does not wait for them: it is drawn again
    once there are newer ones. Those of an earlier state of the database are known until then: live
    sources change it faster than findings of a large fleet are evaluated.
    """
    future = _under_way(scope)
    if future is None:
        return _earlier(scope)
    wait([future], WAIT_S)
    if not future.done():
        return _earlier(scope)
    try:
        return future.result()
    except Exception:
        with _lock:  # the next one tries again
            for key in [key for key, one in _evaluations.items() if one is future]:
                del _evaluations[key]
        raise


def latest_known(scope: Scope) -> pl.DataFrame | None:
    """Return the findings of a scope that were evaluated last, and begin no evaluation."""
    with _lock:
        last = _evaluations.get(_key(scope))
    if last is not None and last.done() and last.exception() is None:
        return last.result().findings
    found = _earlier(scope)
    return None if found is None else found.findings


def is_evaluated(scope: Scope) -> bool:
    """Say whether the findings of the database's present state are known."""
    future = _evaluations.get(_key(scope))
    return future is not None and future.done()


def has_newer(scope: Scope, shown: Found | None) -> bool:
    """Say whether `known` returns others than those shown, or raises, at once."""
    future = _under_way(scope)
    return (future is not None and future.done()) or _earlier(scope) is not shown


def evaluation(scope: Scope) -> Future[Found]:
    """Return the evaluation of a scope in the database's state, begun where none has.

    Pages of all sessions of readers of the same teams share it, and the flags.
    """
    key = _key(scope)
    with _lock:
        if (future := _evaluations.get(key)) is None:
            for oldest in list(_evaluations)[: max(0, len(_evaluations) - EVALUATIONS_KEPT + 1)]:
                del _evaluations[oldest]
            debited = usage.account().evaluating()(_evaluate)
            future = _evaluations[key] = _pool.submit(debited, current_store(), key[1])
        return future


def forget() -> list[Future[Found]]:
    """Forget all evaluations; return them, since some may still run."""
    with _lock:
        forgotten = list(_evaluations.values())
        _evaluations.clear()
    return forgotten


def _under_way(scope: Scope) -> Future[Found] | None:
    """Return the evaluation of a scope in the present state; while one of before runs, that one.

    None where there is none and who asks has taken as much as they may.
    """
    with _lock:
        present = _evaluations.get(_key(scope))
        running = [one for one in _alike(scope) if not one.done()]
    found = present or next(iter(running), None)
    return found if found or is_refused() else evaluation(scope)


def _earlier(scope: Scope) -> Found | None:
    """Return the last findings of a scope that were evaluated, in whatever state."""
    with _lock:
        done = (one for one in _alike(scope) if one.done() and one.exception() is None)
        last = next(done, None)
    return None if last is None else last.result()


def _alike(scope: Scope) -> list[Future[Found]]:
    """Return the evaluations of a scope but for when its window ends, the last one first."""
    state, wanted = _key(scope)
    return [
        future
        for (of_state, other), future in reversed(_evaluations.items())
        if of_state[0] == state[0] and is_alike(other, wanted)
    ]


def _key(scope: Scope) -> tuple[marts.State, Scope]:
    return marts.state(), replace(rows.limited(scope), bucket_ms=None)


def _evaluate(store: Store, scope: Scope) -> Found:
    """Read findings and fixes in one query: they are of one evaluation; and what else takes long.

    store: the page's; by the time that a thread is free another one may be in use.
    """
    both = marts.read_now(
        store,
        f"""select false as is_fix, * from marts.findings
        union all by name
        select true as is_fix, * from marts.fixes
        order by {ranked.FINDINGS}""",
        (),
        scope,
        TIMEOUT_S,
    )
    fixes = both.filter("is_fix").sort(
        "back_cost", "back_ms", "back_high_ms", "gpu_ms", "fix", "target",
        descending=[True, True, True, True, False, False], nulls_last=True,
    )  # fmt: skip
    (idle,) = marts.read_now(store, EXECUTING_IDLE, (), scope, TIMEOUT_S).rows()
    shown = both.filter(~pl.col("is_fix")).head(FINDINGS_MAX)
    return Found(shown, fixes.head(FIXES_SHOWN), idle)


losing_now = marts.reader("losing_now", "cost_per_h desc nulls last")
run_verdicts = marts.reader("run_verdicts", "run_key")
objectives = marts.reader("goodput_objectives", ranked.OBJECTIVES)


def _pending() -> int:
    """Return how many evaluations have not ended."""
    with _lock:
        return sum(not one.done() for one in _evaluations.values())


evaluations.count_with("findings", _pending)

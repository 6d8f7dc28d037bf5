"""Open findings of the time shown, evaluated beside the pages: no page waits for them.

Findings of a large fleet take seconds. One thread evaluates them; a page gets what is known, also
of the state of the database before, and is drawn again when a first answer comes.
"""

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import polars as pl

from goodput_app.access import rows
from goodput_app.dashboard.data import findings, marts
from goodput_app.dashboard.data.kept import is_refused
from goodput_app.process import evaluations
from goodput_queries.scope import Scope

log = logging.getLogger(__name__)

IS_EVALUATED = True  # tests of other things switch it off
FIRST_WAIT_S = 0.05  # small databases answer within it
REST_S = 30.0  # between two evaluations of a window
REST_SHARE = 10  # or as many times as the last one took
ALIKE = 0.05  # windows whose ends differ by less than this share of them have the same flags
KEPT = 8
OPEN_STATES = ("open", "acknowledged")
COLUMNS = ("finding_key", "severity", "title", "cluster", "node", "gpu_uuid", "run_key")


@dataclass
class _Known:
    scope: Scope
    state: marts.State
    future: Future[pl.DataFrame]
    began_at: float
    answer: pl.DataFrame | None = None
    took_s: float = 0.0


_pool = ThreadPoolExecutor(1, thread_name_prefix="goodput-flags")
_known: list[_Known] = []
_lock = threading.Lock()


def known(scope: Scope) -> pl.DataFrame | None:
    """Return the open findings of the window of a scope, the worst first; None: not yet known.

    Rows have COLUMNS; a finding about several nodes has a row for each that its subject names.
    What is known may be of an earlier state of the database; then a newer answer is on its way.
    """
    if not IS_EVALUATED:
        return None
    wanted = scope_of(scope)
    state = marts.state()
    with _lock:
        entry = next((one for one in _known if _is_alike(one, wanted, state)), None)
        if (entry is None or _is_due(entry, state)) and not is_refused():
            entry = _begin(wanted, state, entry)
    if entry is None:
        return None
    wait([entry.future], FIRST_WAIT_S if entry.answer is None else 0)
    if entry.future.done() and entry.future.exception() is None:
        return entry.future.result()
    return entry.answer


def scope_of(scope: Scope) -> Scope:
    """Return the scope whose findings are evaluated for a page: the window, whatever it is of."""
    return replace(
        rows.limited(scope), node=None, gpu_uuid=None, gpu_model=None, team=None, user=None,
        run=None, partition=None,
    )  # fmt: skip


def _begin(scope: Scope, state: marts.State, before: _Known | None) -> _Known:
    if before is not None:
        _known.remove(before)
    answer = before.answer if before is not None else None
    if before is not None and before.future.done() and before.future.exception() is None:
        answer = before.future.result()
    entry = _Known(scope, state, Future(), time.monotonic(), answer)
    entry.future = _pool.submit(_evaluate, entry, findings.evaluation(scope))
    _known.insert(0, entry)
    del _known[KEPT:]
    return entry


def _evaluate(entry: _Known, evaluation: Future[findings.Found]) -> pl.DataFrame:
    try:
        found = evaluation.result().findings
    except Exception:
        log.exception("the flags of a page could not be evaluated")
        raise
    finally:
        entry.took_s = time.monotonic() - entry.began_at
    is_open = pl.col("is_open") & pl.col("state").is_in(OPEN_STATES)
    return by_node(found.filter(is_open)).select(COLUMNS)


def by_node(found: pl.DataFrame) -> pl.DataFrame:
    """Return findings with a row for each node that the subject of one without a node names."""
    is_named = pl.all_horizontal(pl.col("node", "gpu_uuid", "run_key").is_null())
    named = pl.when(is_named).then(pl.col("subject").str.split(", "))
    return found.with_columns(node=named.otherwise(pl.concat_list("node"))).explode("node")


def _is_due(entry: _Known, state: marts.State) -> bool:
    """Say whether an answer is old enough, and of another state, to be evaluated again."""
    if not entry.future.done():
        return False
    has_failed = entry.future.exception() is not None
    rest_s = max(REST_S, REST_SHARE * entry.took_s)
    return (has_failed or entry.state != state) and time.monotonic() - entry.began_at > rest_s


def _is_alike(entry: _Known, wanted: Scope, state: marts.State) -> bool:
    """Say whether an answer is of the same database, cluster, teams and nearly the same window."""
    if entry.state[0] != state[0] or entry.scope.cluster != wanted.cluster:
        return False
    if entry.scope.teams != wanted.teams:
        return False
    ends = [(entry.scope.from_ms, wanted.from_ms), (entry.scope.to_ms, wanted.to_ms)]
    most = ALIKE * ((wanted.to_ms or 0) - (wanted.from_ms or 0))
    return all(
        one == other or (one is not None and other is not None and abs(one - other) <= most)
        for one, other in ends
    )


def _pending() -> int:
    """Return how many evaluations have not ended."""
    with _lock:
        return sum(not one.future.done() for one in _known)


evaluations.count_with("flags", _pending)

"""Cached reads: one function a mart, and the only place where pages meet the database.

An answer is kept as long as nothing was loaded or built: the key holds the scope and the state of
the database, so a page never shows yesterday's rows after an ingest.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol
from weakref import WeakKeyDictionary

import polars as pl

from goodput_app import ranked
from goodput_app.access import rows
from goodput_app.dashboard.data.kept import kept
from goodput_app.process import own_cost as process
from goodput_app.process import turns
from goodput_app.process.store import current_store
from goodput_app.text import throttling, units
from goodput_queries.database import LocalStore, Store
from goodput_queries.scope import EVERYTHING, Scope

TIMEOUT_S = 20.0
LOSSES_SHOWN = 500
GAPS_SHOWN = 2_000
INTERVALS_SHOWN = 1_000
JOBS_SHOWN = 200
RUNS_SHOWN = 1_800
REJECTS_SHOWN = 500
COUNTED = "*, count(*) over () as total"
STEPS_DRAWN = 350  # each gives its bucket's slowest and fastest, in two lines

State = tuple[int, int, str]

_numbers = itertools.count()
_stores: WeakKeyDictionary[Store, int] = WeakKeyDictionary()
_states: WeakKeyDictionary[Store, tuple[int, State]] = WeakKeyDictionary()
_lock = threading.Lock()


def state() -> State:
    """Return what changes when anything is loaded or built: part of the key of every answer.

    Each panel of a page asks for it, so that it is read once a commit of this process.
    """
    store = current_store()
    commits = store.commits if isinstance(store, LocalStore) else None
    with _lock:
        number = _stores.setdefault(store, next(_numbers))
        at_commits, known = _states.get(store, (None, None))
    if known is not None and commits == at_commits:
        return known
    loaded = store.read("select coalesce(max(sequence), 0)::bigint as n from state.ingested").item()
    built = store.read(
        "select coalesce(string_agg(b, ',' order by b), '') from "
        "(select concat_ws(':', cluster, as_of_ms, sequence) as b from state.built)"
    ).item()
    found = number, loaded, built
    if commits is not None:
        with _lock:
            _states[store] = commits, found
    return found


def has_rows() -> bool:
    """Return whether anything was ever loaded, built or not."""
    return state()[1] > 0


def write_error() -> str | None:
    """Return why this process could not write last; None where it could."""
    store = current_store()
    return store.write_error if isinstance(store, LocalStore) else None


def own_cost() -> str:
    """Return what this server costs, as a sentence; of a read-only database it builds nothing."""
    cost = process.own_cost(current_store())
    memory = "" if cost.memory_bytes is None else f", and has {cost.memory_bytes >> 20:,} MiB"
    built, evaluated = units.duration(cost.built_s), units.duration(cost.evaluated_s)
    return (
        f"This server took {units.percent(cost.cpu_s / cost.for_s)} of a core in "
        f"{units.duration(cost.for_s)}{memory}. Builds took {built}, evaluating views {evaluated}."
    )


def is_built() -> bool:
    """Return whether the ledger holds everything that was loaded."""
    _, loaded, built = state()
    return str(loaded) in {of_cluster.rsplit(":", 1)[-1] for of_cluster in built.split(",")}


def is_refused() -> bool:
    """Return whether the last build was not published, since its checks failed."""
    return not is_built() and bool(
        read("select exists (from state.refused_builds) as is_refused").item()
    )


@kept(400)
def _kept(
    sql: str, parameters: tuple[object, ...], scope: Scope, state: State
) -> pl.DataFrame:  # `state` is there for the key
    del state
    return read_now(current_store(), sql, parameters, scope, TIMEOUT_S)


def read_now(
    store: Store, sql: str, parameters: tuple[object, ...], scope: Scope, timeout_s: float
) -> pl.DataFrame:
    """Return the rows of a query, decimals as floats; the caller keeps them."""
    turns.come_later()
    frame = store.read(
        sql, list(parameters) or None, scope=scope, timeout_s=timeout_s, is_kept=True
    )
    decimals = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Decimal)]
    return frame.with_columns(pl.col(decimals).cast(pl.Float64))


def read(sql: str, scope: Scope = EVERYTHING, *parameters: object) -> pl.DataFrame:
    """Return the rows of a query, kept until something is loaded or built; for `data` modules.

    A reader of some teams is answered from their rows alone: the scope, which is a part of the
    key, has these teams. Raises NotPermittedError for what holds rows of others.
    """
    return _kept(sql, parameters, rows.limited(scope), state())


class Reader(Protocol):
    """A function that reads a mart for a scope."""

    def __call__(self, scope: Scope, *parameters: object) -> pl.DataFrame:
        """Return the rows; parameters: of the condition of the reader."""


def without_buckets(scope: Scope) -> Scope:
    """Return the scope of what no chart cuts into buckets."""
    return replace(scope, bucket_ms=None)


def of_any_owner(scope: Scope, bucket_ms: int | None = None) -> Scope:
    """Return the scope without owners: what a GPU, host or link does is shown whoever has it."""
    return replace(scope, team=None, user=None, run=None, partition=None, bucket_ms=bucket_ms)


def of_any_place(scope: Scope) -> Scope:
    """Return the scope without place: a run is on all its nodes and GPUs."""
    return replace(scope, node=None, gpu_uuid=None, bucket_ms=None)


def of_cluster(scope: Scope) -> Scope:
    """Return the window and cluster of the scope alone."""
    return Scope(from_ms=scope.from_ms, to_ms=scope.to_ms, cluster=scope.cluster)


def reader(
    mart: str,
    order_by: str = "all",
    *,
    columns: str = "*",
    where: str = "true",
    limit: int | None = None,
    of: Callable[[Scope], Scope] = without_buckets,
) -> Reader:
    """Return the reader of a mart: its columns in SQL, in this order, at most `limit` rows.

    where: a condition, with parameters $1 ...; of: makes the scope that is read of a page's
    """
    at_most = "" if limit is None else f" limit {limit}"
    sql = f"select {columns} from marts.{mart} where {where} order by {order_by}{at_most}"
    return lambda scope, *parameters: read(sql, of(scope), *parameters)


def run_reader(
    mart: str,
    order_by: str,
    *,
    columns: str = "*",
    limit: int | None = None,
    of: Callable[[Scope], Scope] = without_buckets,
) -> Callable[[Scope], pl.DataFrame]:
    """Return the reader of the rows of a mart that are of the scope's run: as `reader`."""
    of_runs = reader(mart, order_by, columns=columns, where="run_key = $1", limit=limit, of=of)
    return lambda scope: of_runs(scope, scope.run)


def runs_withheld(scope: Scope) -> tuple[int, int]:
    """Return how many runs had GPUs in the window, and how many of them are of other teams."""
    sql = "select runs, withheld from marts.runs_withheld"
    found: tuple[int, int] = read(sql, of_cluster(scope)).row(0)
    return found


def clusters() -> pl.DataFrame:
    """Return every cluster and the time there is evidence for."""
    return read("select * from marts.clusters order by as_of_at desc, cluster")


scope_values = reader("scope_values", "kind, gpu_ms desc, value", of=of_cluster)


def with_run_names(
    frame: pl.DataFrame, scope: Scope, key: str = "run_key", run_id: str = "run_id"
) -> pl.DataFrame:
    """Return rows of runs with what each is called, in a column named after `run_id`."""
    runs = scope_values(scope).filter(pl.col("kind") == "run")
    names = dict(runs.select("value", "label").iter_rows())
    named = pl.col(key).replace_strict(names, default=None, return_dtype=pl.String)
    return frame.with_columns(pl.coalesce(named, run_id).alias(run_id.replace("_id", "_name")))


goodput_summary = reader("goodput_summary")
evidence_ladder = reader("evidence_ladder", of=of_cluster)
ledger_by_category = reader("ledger_by_category", "code")
ledger_over_time = reader("ledger_over_time", "bucket_at, category", of=lambda scope: scope)


def losses(scope: Scope) -> pl.DataFrame:
    """Return losses, highest cost first; time that nothing classifies is no loss."""
    return with_run_names(read(f"{ranked.LOSSES} limit {LOSSES_SHOWN}", scope), scope)


def losses_of_teams(scope: Scope) -> pl.DataFrame:
    """Return the losses of each team by category, highest cost first."""
    return with_run_names(read(ranked.LOSSES_OF_TEAMS, scope), scope)


@dataclass(frozen=True)
class IdleGaps:
    """Idle gaps of a scope, in parts: a gap has one for each category of the ledger it lies in.

    top_gaps: marts.top_idle_gaps, highest cost first
    sums: marts.idle_gap_sums
    """

    top_gaps: pl.DataFrame
    sums: pl.DataFrame


_idle_gap_sums = reader("idle_gap_sums", "category, least_s")
_top_idle_gaps = reader("top_idle_gaps", "cost desc nulls last, gpu_ms desc, gap_id, category")


def idle_gaps(scope: Scope) -> IdleGaps:
    """Return the idle gaps, highest cost first, and the sums of all: a big fleet has many."""
    return IdleGaps(with_run_names(_top_idle_gaps(scope), scope), _idle_gap_sums(scope))


def category_intervals(scope: Scope, category: str, blame: str | None) -> pl.DataFrame:
    """Return the intervals of a category (and blame), highest cost first: at most INTERVALS_SHOWN.

    Rows of marts.category_intervals; all_intervals, all_gpu_ms and all_cost are of all.
    """
    found = read(
        f"""select
            *, count(*) over () as all_intervals, sum(gpu_ms) over ()::bigint as all_gpu_ms,
            sum(cost) over () as all_cost
        from marts.category_intervals
        where category = $1 and ($2::varchar is null or blame = $2)
        order by cost desc nulls last, gpu_ms desc, start_at, gpu_uuid, gpu_instance
        limit {INTERVALS_SHOWN}""",
        replace(scope, bucket_ms=None),
        *(category, blame),
    )
    return with_run_names(found, scope)


waiting_jobs = reader(
    "waiting_jobs",
    "gpus * waited_s desc, job_run_key",
    columns="*, count(*) over () as all_jobs",
    limit=JOBS_SHOWN,
)
throttle_episodes = reader(
    "throttle_episodes",
    "booked_gpu_ms desc nulls last, duration_s desc, start_at",
    limit=GAPS_SHOWN,
)


def throttle_sources(scope: Scope) -> pl.DataFrame:
    """Return whether any source reports throttling in the scope."""
    return read(throttling.SOURCES, scope)


runs = reader("runs", ranked.RUNS, columns=COUNTED, limit=RUNS_SHOWN)
# by `team`, `size` or `reason`
queue_waits = reader(
    "queue_waits",
    "place, waiting_gpus desc, wait_p90_s desc nulls last, name",
    where="group_by = $1",
)
job_waits = reader(
    "job_waits",
    "gpus * wait_s desc nulls last, job_run_key",
    columns=COUNTED,
    where="not is_started",
    limit=JOBS_SHOWN,
)
queue_quotas = reader("queue_quotas", "kind, queue, flavor, resource, cluster")
run_categories = reader("run_categories", "run_key, gpu_ms desc")
run_wall_clock = run_reader("run_wall_clock", "run_key")  # no row: no step was completed
run_forecasts = run_reader("run_forecasts", "run_key")  # no row: its end is not planned, or past
attempts = run_reader("attempts", "attempt")


def train_steps(scope: Scope) -> pl.DataFrame:
    """Return the steps of the scope's run; of very many the slowest and fastest of each stretch."""
    return read(
        f"""with steps as (
            select *, count(*) over () as steps,
                row_number() over (order by attempt, step) - 1 as nr
            from marts.train_steps where run_key = $1
        ), stretches as (
            select *, nr * {STEPS_DRAWN} // steps as stretch from steps
        )
        select * exclude (nr, stretch) from stretches
        qualify steps <= 2 * {STEPS_DRAWN}
            or row_number() over (partition by stretch order by step_s desc, nr) = 1
            or row_number() over (partition by stretch order by step_s, nr) = 1
        order by attempt, step""",
        scope,
        scope.run,
    )


stragglers = run_reader("stragglers", "imposed_wait_gpu_s desc, start_at")
blast_radius = run_reader("blast_radius", "gang_gpu_s desc, gpu_uuid")
communication = run_reader("communication", "run_key")
run_gpus = run_reader("run_gpus", "node, gpu_index, gpu_uuid")


def sources() -> pl.DataFrame:
    """Return what each source brought and how fresh it is."""
    return read("select * from marts.sources order by source")


def live_sources() -> pl.DataFrame:
    """Return how each live source is doing at this moment: never a kept answer."""
    rows.require_all_teams("live sources")
    return current_store().read(
        "select * from marts.live_sources order by failures desc, age_intervals desc nulls first, "
        "source, origin",
        timeout_s=TIMEOUT_S,
    )


def is_polled() -> bool:
    """Return whether a live source answers now: the answer is no row of anybody."""
    polled = current_store().read(
        "select count(*) > 0 from marts.live_sources where state <> 'stale'", timeout_s=TIMEOUT_S
    )
    return bool(polled.item())


coverage_by_hour = reader("coverage_by_hour", "source, hour_at")
reading_precision = reader("reading_precision", "cluster")


def has_telemetry(scope: Scope) -> bool:
    """Return whether any reading covers any GPU in the window of the scope."""
    if not rows.sees_all(scope):
        return bool(read("select has_readings from marts.throttle_sources", scope).item())
    seen = "select 1 from intermediate.int_gpu_activity where in_window(start_ms, end_ms) limit 1"
    return not read(seen, scope).is_empty()


data_quality = reader("data_quality", "gpu_ms desc nulls last, n desc")


def rejects() -> pl.DataFrame:
    """Return the rejected rows with their reasons."""
    return read(
        "select *, count(*) over () as total from raw.rejects "
        f"order by source, reason, origin, line limit {REJECTS_SHOWN}"
    )

"""What a build computes again: one value, which new loads begin and each stage adds to.

A build asks `close` what of a stage depends on what is dirty, computes that, and adds where the
rows differ from the previous build. A stage that came out as it was makes nothing dirty, which is
known only once it was computed: therefore the set is closed in the order of the stages.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Self

import duckdb

from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.evidence import retention
from goodput_queries.ledger_build.differences import IDLE_MARGIN_MS
from goodput_queries.ledger_build.dirty_hours import EVERY, HOUR_MS, NOTHING, DirtyHours, Hours
from goodput_queries.ledger_build.watermarks import reading_margin_ms

SERVING_TABLES = ("serving_samples", "serving_histograms", "serving_requests")
# a sample covers the time since the one before it, over serving_gap_max_ms and the ten minutes
# around it; a request lasts up to an hour
SERVING_MARGINS_MS = (2_700_000, 5_400_000)
# what is written to them is written by loads alone
LOADED = {f"raw.{name}" for name in ("gpu_instances", "gpus", "nodes")}
# made of the archive too, where readings were dropped
ROLL_UPS = {
    f"marts.{name}"
    for name in ("ledger_hourly_by_node", "statement_hourly", "statement_energy_hourly")
}
# nodes in telemetry and events, and until when their ownership is inferred
NODES = {"staging.stg_node_clusters", "staging.stg_unscheduled"}
# its hours are those of serving telemetry, which reach farther than those of readings
SERVING = "intermediate.int_serving_timeline"
# the first ten minutes of an allocation, which it leaves out, may lie in the hour after it began
OF_ALLOCATIONS = "intermediate.int_held_hours"
# with the stages it reads it says from when to when the ledger goes
BOUNDING = "intermediate.int_gpu_units"


@dataclass(frozen=True)
class Change:
    """How a stage came out: the rows it wrote, and where they differ from the previous build."""

    rows: int = 0
    hours: DirtyHours = NOTHING
    is_none: bool = False  # every row is as it was


@dataclass(frozen=True)
class DirtySet:
    """What differs from the previous build, as far as it is known.

    since: the last load of the previous build; None: everything is dirty
    loaded: tables that were loaded into since
    readings, serving: the hours around new telemetry
    every: the hours that the ledger has, and once its GPUs are known those of theirs (`bounded`)
    added: the hours over which the end of the evidence moved, known with them
    frozen_until: earlier hours cannot be computed again, since their readings were dropped
    stages: those that were brought up to date, in this build
    """

    since: int | None
    loaded: frozenset[str]
    readings: frozenset[int]
    serving: frozenset[int]
    every: frozenset[int]
    frozen_until: int
    added: frozenset[int] = frozenset()
    stages: Mapping[str, Change] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Say whether everything is dirty."""
        return self.since is None

    def has_same(self, stages: Iterable[str]) -> bool:
        """Say whether all of these stages were computed and came out as they were."""
        return all(name in self.stages and self.stages[name].is_none for name in stages)

    def differing(self, stages: Iterable[str]) -> DirtyHours:
        """Return where these stages differ, of those that were computed."""
        hours = (self.stages[name].hours for name in stages if name in self.stages)
        return reduce(or_, hours, NOTHING)

    def after(self, changes: Mapping[str, Change]) -> Self:
        """Return the set with these stages as well."""
        return replace(self, stages={**self.stages, **changes})


def of_loads(cursor: duckdb.DuckDBPyConnection, since: int | None) -> DirtySet:
    """Return what the loads after `since` make dirty."""
    return DirtySet(
        since=since,
        loaded=frozenset(loaded_tables(cursor, since)),
        readings=frozenset(reading_hours(cursor, since)),
        serving=frozenset(_hours_of_loads(cursor, since, SERVING_TABLES, *SERVING_MARGINS_MS)),
        every=frozenset(_ledger_hours(cursor)),
        frozen_until=retention.kept_from_ms(cursor, "gpu_samples") // HOUR_MS,
    )


def bounded(cursor: duckdb.DuckDBPyConnection, dirty: DirtySet) -> DirtySet:
    """Return the set with the hours that follow from GPUs and clusters; BOUNDING is computed."""
    added = frozenset(_hours_since_last_end(cursor))
    return replace(dirty, every=dirty.every | _hours_of_gpus(cursor), added=added)


def close(dirty: DirtySet, model: Model) -> DirtyHours:
    """Return what of a stage depends on what is dirty, and has to be computed again.

    Of an hourly stage hours; of another NOTHING or EVERY, where those with keys compute the
    dirty ones alone (`dirty_runs.py`).
    """
    if model.materialised == "full":
        tables, stages_read = models.evidence(model.qualified_name)
        is_tracked = tables <= LOADED and model.is_compared
        has_new = dirty.is_full or tables & dirty.loaded or not dirty.has_same(stages_read)
        return NOTHING if is_tracked and not has_new else EVERY
    if model.materialised != "hourly":
        return EVERY
    found, hours = EVERY, dirty.every
    if model.qualified_name == SERVING:
        hours = dirty.serving
    elif model in models.of_readings():
        hours = dirty.readings
    elif dirty.is_full and model.qualified_name in ROLL_UPS:
        # those whose readings were dropped come from the archive
        return DirtyHours(frozenset(hours))
    elif not dirty.is_full:
        found = DirtyHours(dirty.added) | dirty.differing(models.inputs(model))
        if model.qualified_name == OF_ALLOCATIONS:
            found |= DirtyHours(frozenset(hour + 1 for hour in found.hours))
    return found.within({hour for hour in hours if hour >= dirty.frozen_until})


def loaded_tables(cursor: duckdb.DuckDBPyConnection, since: int | None) -> set[str]:
    """Return the tables that were loaded into after the load `since`, with their layer."""
    rows = cursor.execute(
        "select distinct table_name from state.ingested where sequence > $1", [last_load(since)]
    ).fetchall()
    tables = models.base_tables()
    return {tables[name].qualified_name for (name,) in rows if name in tables}


def has_new_engines_of_known_requests(
    cursor: duckdb.DuckDBPyConnection, loaded: set[str], since: int | None
) -> bool:
    """Say whether engines were loaded of endpoints that only request logs had named.

    What is known of their requests belongs to these engines, at all times.
    """
    if since is None or "raw.serving_samples" not in loaded:
        return False
    found = cursor.execute(
        """select 1
        from (
            select endpoint from staging.stg_serving_endpoints
            group by cluster, endpoint having not bool_or(has_samples)
        )
        semi join (from raw.serving_samples where load_sequence > $1) using (endpoint)
        limit 1""",
        [since],
    ).fetchall()
    return bool(found)


def reading_hours(cursor: duckdb.DuckDBPyConnection, since: int | None) -> Hours:
    """Return the hours whose telemetry state may have changed after the load `since`.

    A reading covers the time back to the one before it, and ends the state before it.
    """
    tables = ("gpu_samples", "gpu_samples_other", "gpu_processes", "node_samples", "link_samples")
    margin_ms = reading_margin_ms(cursor)
    return _hours_of_loads(cursor, since, tables, margin_ms, margin_ms)


def _hours_of_loads(
    cursor: duckdb.DuckDBPyConnection, since: int | None, tables: tuple[str, ...], *margin_ms: int
) -> Hours:
    """Return the hours of loads after `since` of some tables, with margins before and after."""
    before_ms, after_ms = margin_ms
    return _hours(
        cursor,
        f"""select distinct unnest(range(
            (to_ms(window_start_at) - {before_ms}) // {HOUR_MS},
            (to_ms(window_end_at) + {after_ms}) // {HOUR_MS} + 1
        ))
        from state.ingested
        where table_name in {tables}
            and window_start_at is not null
            and sequence > {last_load(since)}""",
    )


def last_load(since: int | None) -> int:
    """Return a number after which come the loads of a build: all of them where `since` is None."""
    return -1 if since is None else since


def _hours_since_last_end(cursor: duckdb.DuckDBPyConnection) -> Hours:
    """Return the hours between each cluster's last end of evidence and the present one."""
    return _hours(
        cursor,
        f"""select unnest(range(
            (least(coalesce(built.as_of_ms, clusters.first_ms), clusters.as_of_ms)
                - {IDLE_MARGIN_MS}) // {HOUR_MS},
            greatest(coalesce(built.as_of_ms, clusters.as_of_ms), clusters.as_of_ms)
                // {HOUR_MS} + 1
        ))
        from intermediate.int_clusters as clusters
        left join state.built as built using (cluster)
        where built.as_of_ms is distinct from clusters.as_of_ms""",
    )


def _ledger_hours(cursor: duckdb.DuckDBPyConnection) -> Hours:
    """Return every hour that the ledger has: some may have lost their GPUs since."""
    return _hours(
        cursor,
        f"""select unnest(range(min(hour_ms) // {HOUR_MS}, max(hour_ms) // {HOUR_MS} + 1))
        from marts.ledger_hourly_by_node""",
    )


def _hours_of_gpus(cursor: duckdb.DuckDBPyConnection) -> Hours:
    """Return every hour from the first GPU to the end of the evidence, of all clusters."""
    return _hours(
        cursor,
        f"""select distinct unnest(range(start_ms // {HOUR_MS}, as_of_ms // {HOUR_MS} + 1))
        from (
            select cluster, min(start_ms) as start_ms
            from intermediate.int_gpu_units
            group by cluster
        )
        inner join intermediate.int_clusters using (cluster)""",
    )


def _hours(cursor: duckdb.DuckDBPyConnection, sql: str) -> Hours:
    return {hour for (hour,) in cursor.execute(sql).fetchall()}

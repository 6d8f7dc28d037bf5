"""Finds the dirty job runs, runs and hours that an incremental build recomputes.

Raw rows carry the number of the load that wrote them, so that new rows need no comparison. Dirt
propagates to a fixed point: a new event invalidates its whole run, since a later attempt decides
whether the steps of an earlier one are retained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_queries.catalog import models
from goodput_queries.ledger_build import dirty_gpus
from goodput_queries.ledger_build.watermarks import reading_margin_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

HOUR_MS = 3_600_000
IDLE_MARGIN_MS = (
    300_000  # what happens within idle_min_ms of an hour may change what the hour is called
)
READINGS_OF_A_PART = 400_000
JOB_RUNS_BEFORE = "temp.job_runs_before"
Hours = set[int]

_ASKED = """select job_run_key, cluster, partition, gpu_type_requested, gpus_requested,
        eligible_ms as start_ms, coalesce(start_ms, record_end_ms) as end_ms
    from {} where eligible_ms is not null and gpus_requested > 0"""
_HELD_CPUS = """select job_run_key, cluster, nodes, cpus, start_ms, end_ms
    from {} where start_ms is not null and cpus > 0"""


def ranges(hours: Iterable[int], most: int) -> list[tuple[int, int]]:
    """Return hours as half-open ranges of at most `most` hours."""
    found: list[tuple[int, int]] = []
    for hour in sorted(hours):
        if found and found[-1][1] == hour and hour - found[-1][0] < most:
            found[-1] = (found[-1][0], hour + 1)
        else:
            found.append((hour, hour + 1))
    return found


def changed_hours(
    cursor: duckdb.DuckDBPyConnection,
    new: str,
    old: str,
    bounds: tuple[str, str],
    reopens: tuple[str, str] | None = None,
) -> Hours:
    """Return the hours in which the intervals of select `new` differ from those of `old`.

    Time differs between the first and the last moment at which, in an hour, the beginnings and
    ends of intervals of the same attributes do not cancel: a job that ends after three days
    reopens its last hour, not three days, and one that is seen to run on only what was added.
    An end that is null, or is planned to come later, is compared at the end of the evidence.

    reopens: the name of a stage and its column with the owner of the time: the GPUs concerned are
    noted in temp.reopened by hour.
    """
    start, end = bounds
    until = f"least({end}, (select max(as_of_ms) from intermediate.int_clusters))"
    cursor.execute(
        f"""create or replace temp table differing as
        with signed as ({_differences(new, old)}),
        cells as (
            select *, unnest(range({start} // {HOUR_MS}, (until_ms - 1) // {HOUR_MS} + 1)) as hour
            from (select *, {until} as until_ms from signed)
        ),
        moments as (
            select
                * exclude ({start}, {end}, until_ms, sign),
                unnest([
                    greatest({start}, hour * {HOUR_MS}), least(until_ms, (hour + 1) * {HOUR_MS})
                ]) as at_ms,
                unnest([sign, -sign]) as step
            from cells
        ),
        uneven as (
            select * exclude (step), sum(step) as steps
            from moments
            group by all
            having sum(step) <> 0
        ),
        stretches as (
            select * exclude (at_ms, steps), min(at_ms) as from_ms, max(at_ms) as to_ms
            from uneven
            group by all
        )
        select distinct
            {dirty_gpus.columns(reopens)}
            unnest([
                (from_ms - {IDLE_MARGIN_MS}) // {HOUR_MS},
                hour,
                (to_ms + {IDLE_MARGIN_MS}) // {HOUR_MS}
            ]) as hour
        from stretches"""
    )
    if reopens:
        dirty_gpus.note(cursor, reopens)
    return _hours(cursor, "select distinct hour from temp.differing")


def loaded_tables(cursor: duckdb.DuckDBPyConnection, sequence: int | None) -> set[str]:
    """Return the tables that were loaded into since load `sequence`, with their layer."""
    rows = cursor.execute(
        "select distinct table_name from state.ingested where sequence > $1",
        [-1 if sequence is None else sequence],
    ).fetchall()
    tables = models.base_tables()
    return {tables[name].qualified_name for (name,) in rows if name in tables}


def changed_rows(cursor: duckdb.DuckDBPyConnection, new: str, old: str) -> Hours:
    """Return the hours (of column hour_ms) in which select `new` gives other rows than `old`."""
    return _hours(
        cursor,
        f"""select distinct hour_ms // {HOUR_MS}
        from ({_differences(new, old)})""",
    )


def differ(cursor: duckdb.DuckDBPyConnection, new: str, old: str) -> bool:
    """Say whether select `new` gives other rows than `old`."""
    return bool(cursor.execute(f"select 1 from ({_differences(new, old)}) limit 1").fetchall())


def _differences(new: str, old: str) -> str:
    """Return a select of rows whose number differs, with `sign`: number in `new` less in `old`.

    Counting is cheaper than `except all`, which numbers the rows of each kind.
    """
    return f"""select * exclude (one), sum(one) as sign
        from (select *, 1 as one from ({new}) union all select *, -1 from ({old}))
        group by all
        having sum(one) <> 0"""


def _hours(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: object = None) -> Hours:
    return {hour for (hour,) in cursor.execute(sql, parameters).fetchall()}


def job_run_hours(cursor: duckdb.DuckDBPyConnection, new: str, old: str) -> Hours:
    """Return the hours in which demand or held CPUs differ between two tables of job runs."""
    bounds = ("start_ms", "end_ms")
    return changed_hours(cursor, _ASKED.format(new), _ASKED.format(old), bounds) | changed_hours(
        cursor, _HELD_CPUS.format(new), _HELD_CPUS.format(old), bounds
    )


def set_constants(cursor: duckdb.DuckDBPyConnection) -> None:
    """Set the constants that a build compares readings with; needs the watermarks of readings."""
    cursor.execute(f"set variable reading_margin_ms = {reading_margin_ms(cursor)}")
    cursor.execute(
        """set variable build_thresholds = (
            select map_from_entries(list((name, value))) from reference.thresholds)"""
    )


def note_reading_parts(cursor: duckdb.DuckDBPyConnection, most: int) -> int:
    """Set where the parts of the table begin in which the readings of these hours are looked at.

    Returns how many there are: at most so many, and none that is not worth its own.
    """
    first, after = cursor.execute(
        """select coalesce(min(place), 0), coalesce(max(place) + 1, 0)
        from staging.stg_gpu_samples
        where ts >= from_ms(build_from_ms() - reading_margin_ms())
            and ts < from_ms(build_to_ms() + reading_margin_ms())"""
    ).fetchall()[0]
    parts: int = max(1, min(most, (after - first) // READINGS_OF_A_PART))
    borders = [first + part * (after - first) // parts for part in range(parts + 1)]
    cursor.execute(f"set variable build_reading_parts = {borders}")
    return parts


def reading_hours(cursor: duckdb.DuckDBPyConnection, sequence: int | None) -> Hours:
    """Return the hours whose telemetry state may have changed since load `sequence`.

    A reading covers the time back to the one before it, and ends the state before it.
    """
    return _hours(
        cursor,
        """select distinct unnest(range(
            (to_ms(window_start_at) - $1) // 3600000, (to_ms(window_end_at) + $1) // 3600000 + 1
        ))
        from state.ingested
        where table_name in ('gpu_samples', 'gpu_processes', 'node_samples')
            and window_start_at is not null
            and sequence > $2""",
        [reading_margin_ms(cursor), -1 if sequence is None else sequence],
    )


def hours_since_last_end(cursor: duckdb.DuckDBPyConnection) -> Hours:
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


def all_hours(cursor: duckdb.DuckDBPyConnection) -> Hours:
    """Return every hour that the ledger covers or did cover."""
    return _hours(
        cursor,
        f"""select distinct unnest(range(
            (select min(start_ms) from intermediate.int_gpu_units where units.cluster = cluster)
                // {HOUR_MS},
            as_of_ms // {HOUR_MS} + 1))
        from intermediate.int_clusters as units
        -- hours whose GPUs have left the inventory since are to be emptied
        union
        select unnest(range(min(hour_ms) // {HOUR_MS}, max(hour_ms) // {HOUR_MS} + 1))
        from marts.ledger_hourly_by_node""",
    )


def note_changed_job_runs(cursor: duckdb.DuckDBPyConnection, new: str, old: str) -> None:
    """Write job runs whose record changed beyond its running time to temp.changed_job_runs.

    JOB_RUNS_BEFORE has what was known of them, as select `old` gives it.
    """
    cursor.execute(f"create or replace temp table job_runs_before as {old}")
    cursor.execute(
        f"""create or replace temp table changed_job_runs as
        with said_before as (select * exclude (observed_ms) from {JOB_RUNS_BEFORE}),
        said as (select * exclude (observed_ms) from {new})
        select distinct job_run_key
        from (
            (from said except from said_before)
            union all
            (from said_before where is_inferred except from said)
        )"""
    )


def note_changed_inferred_holds(cursor: duckdb.DuckDBPyConnection) -> None:
    """Fill temp.changed_inferred_holds; a second table has those of the previous build."""
    before, now = "from temp.stg_inferred_holds_before", "from staging.stg_inferred_holds"
    cursor.execute(
        f"""insert into temp.changed_inferred_holds
        select distinct job_run_key from ({_differences(now, before)})"""
    )


# a hardware error explains why its GPU was late; which GPU it is of, the inventory knows
_LATE_GPUS = "union select attempt_key from intermediate.int_rank_step_losses where is_straggler"


def note_dirty_run_ids(
    cursor: duckdb.DuckDBPyConnection, readings: Hours, *, has_new_errors: bool
) -> None:
    """Fill temp.dirty_run_ids: runs with new events, records, holds, readings, ranks.

    has_new_errors: errors of GPUs are new, or which GPU they are of.
    """
    spans = "".join(
        f" or (last_ms >= {first * HOUR_MS} and first_ms < {last * HOUR_MS})"
        for first, last in ranges(readings, len(readings))
    )
    cursor.execute(
        f"""insert into temp.dirty_run_ids
        with ranked as (
            select attempt_key
            from intermediate.int_rank_gpus
            semi join (
                select node, pid from raw.collectives where load_sequence > built_sequence()
                union
                select node, pid from raw.rank_map where load_sequence > built_sequence()
            ) using (node, pid)
            union
            select attempt_key
            from intermediate.int_rank_gpus
            semi join (
                from raw.profiled_collectives where load_sequence > built_sequence()
            ) using (rank, pid)
            {_LATE_GPUS if has_new_errors else ""}
        ),
        seeds as (
            select distinct cluster, run_id
            from staging.stg_job_events
            where load_sequence > built_sequence()
            union
            -- by the names it has and those it had
            select cluster, unnest([job_id, job_id_raw, job_name])
            from (from intermediate.int_job_runs union all from {JOB_RUNS_BEFORE})
            semi join temp.changed_job_runs using (job_run_key)
            union
            select cluster, run_id from intermediate.int_event_spans where false{spans}
            union
            select lives.cluster, lives.run_id
            from intermediate.int_attempts
            semi join ranked using (attempt_key)
            inner join intermediate.int_attempt_lives as lives using (job_run_key, life)
            union
            -- what is matched by who held the GPUs, or not at all, may find another job run
            select cluster, run_id
            from intermediate.int_event_lives
            where (match is null or match = 'hold') and exists (from temp.changed_job_runs)
        ),
        runs as (
            select distinct run_key
            from intermediate.int_attempts
            where job_run_key in (
                select job_run_key from temp.changed_job_runs
                union
                select job_run_key
                from intermediate.int_attempt_lives semi join seeds using (cluster, run_id)
            )
        )
        select cluster, run_id from seeds
        union
        select cluster, run_id
        from intermediate.int_attempt_lives
        where job_run_key in (
            select job_run_key from intermediate.int_attempts semi join runs using (run_key)
        )"""
    )


def note_dirty_job_runs(cursor: duckdb.DuckDBPyConnection) -> None:
    """Fill temp.dirty_job_runs; keep the attempts and lives that they had (temp.*_before).

    A run has the job runs of its lives and those of its job id, and counts attempts over all.
    """
    cursor.execute(
        """insert into temp.dirty_job_runs
        with touched as (
            select job_run_key from temp.changed_job_runs
            union
            -- as the build before had them
            select job_run_key
            from intermediate.int_attempt_lives semi join temp.dirty_run_ids using (cluster, run_id)
            union
            select job_run_key from temp.int_event_lives where job_run_key is not null
        ),
        lives as (
            select job_run_key, run_of_lives(run_id, place, first_ms) as run_id
            from intermediate.int_event_lives semi join touched using (job_run_key)
            group by job_run_key
        ),
        runs as (
            select cluster, run_id
            from intermediate.int_attempts semi join touched using (job_run_key)
            union
            select job_runs.cluster, coalesce(lives.run_id, job_runs.job_id)
            from intermediate.int_job_runs as job_runs
            semi join touched using (job_run_key)
            left join lives using (job_run_key)
        )
        select job_run_key from touched
        union
        select job_run_key from intermediate.int_attempts semi join runs using (cluster, run_id)"""
    )
    for name in ("attempts", "attempt_lives"):
        cursor.execute(
            f"""create or replace temp table {name}_before as
            from intermediate.int_{name} semi join temp.dirty_job_runs using (job_run_key)"""
        )


def note_dirty_attempts(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Fill temp.dirty_attempts; return whether that asks for the events of yet other runs."""
    cursor.execute(
        f"""insert into temp.dirty_attempts
        with runs as (
            select run_key
            from ({_differences("from temp.int_attempts", "from temp.attempts_before")})
            union
            select run_key
            from intermediate.int_attempts
            where job_run_key in (
                select job_run_key from temp.changed_job_runs
                union
                select job_run_key
                from intermediate.int_attempt_lives
                semi join temp.dirty_run_ids using (cluster, run_id)
                union
                select job_run_key from ({
            _differences("from temp.int_attempt_lives", "from temp.attempt_lives_before")
        })
            )
        )
        select attempt_key from intermediate.int_attempts semi join runs using (run_key)
        union
        select attempt_key from temp.attempts_before semi join runs using (run_key)"""
    )
    more = cursor.execute(
        """insert into temp.dirty_run_ids
        select distinct cluster, run_id
        from intermediate.int_attempt_lives
        where job_run_key in (
            select job_run_key
            from intermediate.int_attempts semi join temp.dirty_attempts using (attempt_key)
        )
        except
        from temp.dirty_run_ids"""
    ).fetchall()
    return bool(more[0][0])


def note_first_event(cursor: duckdb.DuckDBPyConnection) -> None:
    """Set since when there are events of the runs in temp.dirty_run_ids: before it none is read."""
    cursor.execute(
        """set variable build_events_from_ms = (
            select coalesce(min(first_ms), 0)
            from (
                select min(first_ms) as first_ms
                from intermediate.int_event_spans
                semi join temp.dirty_run_ids using (cluster, run_id)
                union all
                select to_ms(min(ts)) from raw.job_events where load_sequence > built_sequence()
            )
        )"""
    )


def note_everything(cursor: duckdb.DuckDBPyConnection, table: str) -> None:
    """Fill one of the dirty tables with everything; all events are then read."""
    source = {
        "changed_inferred_holds": "select distinct job_run_key from staging.stg_inferred_holds",
        "dirty_run_ids": """select cluster, run_id from staging.stg_job_events
            union select cluster, run_id from intermediate.int_event_spans""",
        "dirty_job_runs": "select job_run_key from intermediate.int_job_runs",
        "dirty_attempts": "select attempt_key from intermediate.int_attempts",
    }[table]
    cursor.execute(f"insert into temp.{table} {source}")
    cursor.execute("set variable build_events_from_ms = 0")

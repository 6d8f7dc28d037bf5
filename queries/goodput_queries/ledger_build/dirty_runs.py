"""The dirty job runs and runs of a build: what of jobs it computes again, in temporary tables.

changed_job_runs  their record differs from the previous build, or where they were placed
dirty_run_ids     runs, as events name them, whose events are read and matched to job runs
dirty_job_runs    all job runs of the runs that these concern: a later attempt decides whether the
                  steps of an earlier one are retained

A full build has everything in them.
"""

from collections.abc import Collection

import duckdb

from goodput_queries.catalog import models
from goodput_queries.ledger_build import materialise
from goodput_queries.ledger_build.differences import differences, job_run_hours
from goodput_queries.ledger_build.dirty import NODES, DirtySet
from goodput_queries.ledger_build.dirty_hours import EVERY, HOUR_MS, DirtyHours, ranges

JOB_RUNS_BEFORE = "temp.job_runs_before"
_EVERY_RUN_ID = """select cluster, run_id from staging.stg_job_events
    union
    select cluster, run_id from intermediate.int_event_spans"""
# a hardware error explains why its GPU was late; which GPU it is of, the inventory knows
_LATE_GPUS = "union select attempt_key from intermediate.int_rank_step_losses where is_straggler"
_RANKED = """select attempt_key
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
    ) using (rank, pid)"""


def note_changed_job_runs(cursor: duckdb.DuckDBPyConnection, *, is_full: bool) -> DirtyHours:
    """Write job runs whose record changed beyond its running time to temp.changed_job_runs.

    JOB_RUNS_BEFORE has what was known of those that were looked at; a full build knows nothing.
    Returns the hours in which what they ask for, or their CPUs, differ.
    """
    stage = models.of_layer("intermediate")["int_job_runs"]
    new = f"temp.{stage.name}"
    known = "limit 0" if is_full else f"where {materialise.KEYS['job_runs']}"
    cursor.execute(
        f"create or replace temp table job_runs_before as from {stage.qualified_name} {known}"
    )
    if is_full:
        cursor.execute(
            f"create or replace temp table changed_job_runs as select job_run_key from {new}"
        )
        return EVERY
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
    return job_run_hours(cursor, new, JOB_RUNS_BEFORE)


def note_moved_holds(cursor: duckdb.DuckDBPyConnection) -> None:
    """Add job runs whose holds in temp.int_holds are others than in temp.before."""
    differing = differences("from temp.int_holds", "from temp.before")
    cursor.execute(
        f"insert into temp.changed_job_runs select distinct job_run_key from ({differing})"
    )


def in_hours(hours: Collection[int]) -> str:
    """Return a condition on first_ms and last_ms: one of their moments is in one of the hours."""
    met = [
        f"(last_ms >= {first * HOUR_MS} and first_ms < {after * HOUR_MS})"
        for first, after in ranges(hours, len(hours))
    ]
    return " or ".join(met) or "false"


def seed(cursor: duckdb.DuckDBPyConnection, dirty: DirtySet) -> None:
    """Fill temp.dirty_run_ids: runs with new events, records, holds, readings, ranks."""
    # an event that names only its host may belong to another cluster than was thought
    if not dirty.has_same(NODES):
        cursor.execute(f"insert into temp.dirty_run_ids {_EVERY_RUN_ID}")
        cursor.execute("set variable build_events_from_ms = 0")
        return
    late = _LATE_GPUS if {"raw.gpu_events", "raw.gpus"} & dirty.loaded else ""
    cursor.execute(
        f"""insert into temp.dirty_run_ids
        with ranked as ({_RANKED} {late}),
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
            select cluster, run_id
            from intermediate.int_event_spans where {in_hours(dirty.readings)}
            union
            select lives.cluster, lives.run_id
            from intermediate.int_attempts
            semi join ranked using (attempt_key)
            inner join intermediate.int_attempt_lives as lives using (job_run_key, life)
            union
            -- what is matched by allocated GPUs, or not at all, may find another job run
            select cluster, run_id
            from intermediate.int_event_lives
            where (match is null or match = 'hold') and exists (from temp.changed_job_runs)
        )
        from seeds"""
    )
    _add_whole_runs(cursor)
    _note_first_event(cursor)


def close(cursor: duckdb.DuckDBPyConnection, *, is_full: bool) -> bool:
    """Fill temp.dirty_job_runs, once the events of temp.dirty_run_ids are matched to job runs.

    temp.attempts_before has the attempts that these job runs had. Returns whether events of more
    runs have to be read; whose their events are has not changed.
    """
    has_more = False
    if is_full:
        cursor.execute(
            "insert into temp.dirty_job_runs select job_run_key from intermediate.int_job_runs"
        )
    elif has_more := _add_whole_runs(cursor) > 0:
        _note_first_event(cursor)
    cursor.execute(
        """create or replace temp table attempts_before as
        from intermediate.int_attempts semi join temp.dirty_job_runs using (job_run_key)"""
    )
    return has_more


def _add_whole_runs(cursor: duckdb.DuckDBPyConnection) -> int:
    """Add all job runs of the runs that are dirty, and all names of these in events.

    A run has the job runs of its lives and those of its job id, and counts attempts over all.
    Returns how many names were added.
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
            select job_run_key
            from intermediate.int_event_lives semi join temp.dirty_run_ids using (cluster, run_id)
            where job_run_key is not null
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
        (
            from touched
            union
            select job_run_key from intermediate.int_attempts semi join runs using (cluster, run_id)
        )
        except
        from temp.dirty_job_runs"""
    )
    added = cursor.execute(
        """insert into temp.dirty_run_ids
        select cluster, run_id
        from intermediate.int_event_lives semi join temp.dirty_job_runs using (job_run_key)
        except
        from temp.dirty_run_ids"""
    ).fetchall()
    return int(added[0][0])


def _note_first_event(cursor: duckdb.DuckDBPyConnection) -> None:
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

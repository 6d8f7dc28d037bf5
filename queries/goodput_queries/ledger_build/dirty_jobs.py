"""Finds the dirty job runs, runs and attempts that an incremental build recomputes.

Dirt propagates to a fixed point: a new event invalidates its whole run, since a later attempt
decides whether the steps of an earlier one are retained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_queries.ledger_build.dirty import differences
from goodput_queries.ledger_build.node_hours import HOUR_MS, Hours, ranges

if TYPE_CHECKING:
    import duckdb

JOB_RUNS_BEFORE = "temp.job_runs_before"


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
        select distinct job_run_key from ({differences(now, before)})"""
    )


def in_hours(hours: Hours) -> str:
    """Return a condition on first_ms and last_ms: one of their moments is in one of the hours."""
    met = [
        f"(last_ms >= {first * HOUR_MS} and first_ms < {after * HOUR_MS})"
        for first, after in ranges(hours, len(hours))
    ]
    return " or ".join(met) or "false"


# a hardware error explains why its GPU was late; which GPU it is of, the inventory knows
_LATE_GPUS = "union select attempt_key from intermediate.int_rank_step_losses where is_straggler"


def note_dirty_run_ids(
    cursor: duckdb.DuckDBPyConnection, readings: Hours, *, has_new_errors: bool
) -> None:
    """Fill temp.dirty_run_ids: runs with new events, records, holds, readings, ranks.

    has_new_errors: errors of GPUs are new, or which GPU they are of.
    """
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
            select cluster, run_id from intermediate.int_event_spans where {in_hours(readings)}
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
            from ({differences("from temp.int_attempts", "from temp.attempts_before")})
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
            differences("from temp.int_attempt_lives", "from temp.attempt_lives_before")
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

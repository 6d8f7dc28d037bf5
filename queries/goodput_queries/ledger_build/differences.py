"""Where the rows of a stage differ from those of the previous build."""

import duckdb

from goodput_queries.ledger_build.dirty_hours import HOUR_MS, DirtyHours

IDLE_MARGIN_MS = (
    300_000  # what happens within idle_min_ms of an hour may change what the hour is called
)
# what job runs ask for until they start, and the CPUs that they hold then
_DEMAND = """select * exclude (wait), wait.start_ms, wait.end_ms
    from (
        select job_run_key, cluster, partition, gpu_type_requested, gpus_requested,
            requested_nodes, excluded_nodes, feature_sets, null as nodes, null as cpus,
            unnest(waits) as wait
        from {0}
    )
    union all
    select job_run_key, cluster, null, null, null, null, null, null, nodes, cpus, start_ms, end_ms
    from {0} where start_ms is not null and cpus > 0"""


def changed_hours(
    cursor: duckdb.DuckDBPyConnection,
    new: str,
    old: str,
    bounds: tuple[str, str],
) -> DirtyHours:
    """Return the hours in which the intervals of select `new` differ from those of `old`.

    Time differs between the first and the last moment at which, in an hour, the beginnings and
    ends of intervals of the same attributes do not cancel: a job that ends after three days
    reopens its last hour, not three days, and one that is seen to run on only what was added.
    An end that is null, or is planned to come later, is compared at the end of the evidence.
    """
    start, end = bounds
    until = f"least({end}, (select max(as_of_ms) from intermediate.int_clusters))"
    cursor.execute(
        f"""create or replace temp table differing as
        with signed as ({differences(new, old)}),
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
            unnest([
                (from_ms - {IDLE_MARGIN_MS}) // {HOUR_MS},
                hour,
                (to_ms + {IDLE_MARGIN_MS}) // {HOUR_MS}
            ]) as hour
        from stretches"""
    )
    hours = cursor.execute("select distinct hour from temp.differing").fetchall()
    return DirtyHours(frozenset(hour for (hour,) in hours))


def changed_rows(cursor: duckdb.DuckDBPyConnection, new: str, old: str) -> DirtyHours:
    """Return where select `new` gives other rows than `old`, by their hour_ms."""
    found = f"select distinct hour_ms // {HOUR_MS} from ({differences(new, old)})"
    return DirtyHours(frozenset(hour for (hour,) in cursor.execute(found).fetchall()))


def differ(cursor: duckdb.DuckDBPyConnection, new: str, old: str) -> bool:
    """Say whether select `new` gives other rows than `old`."""
    return bool(cursor.execute(f"select 1 from ({differences(new, old)}) limit 1").fetchall())


def differences(new: str, old: str) -> str:
    """Return a select of rows whose number differs, with `sign`: number in `new` less in `old`.

    Counting is cheaper than `except all`, which numbers the rows of each kind.
    """
    return f"""select * exclude (one), sum(one) as sign
        from (select *, 1 as one from ({new}) union all select *, -1 from ({old}))
        group by all
        having sum(one) <> 0"""


def job_run_hours(cursor: duckdb.DuckDBPyConnection, new: str, old: str) -> DirtyHours:
    """Return the hours in which demand or held CPUs differ between two tables of job runs."""
    return changed_hours(cursor, _DEMAND.format(new), _DEMAND.format(old), ("start_ms", "end_ms"))

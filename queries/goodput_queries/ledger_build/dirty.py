"""Finds the dirty hours that an incremental build recomputes.

Raw rows carry the number of the load that wrote them, so that new rows need no comparison; stages
are compared with what they were before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_queries.catalog import models
from goodput_queries.ledger_build.node_hours import HOUR_MS, Hours, NodeHours
from goodput_queries.ledger_build.watermarks import reading_margin_ms

if TYPE_CHECKING:
    import duckdb

IDLE_MARGIN_MS = (
    300_000  # what happens within idle_min_ms of an hour may change what the hour is called
)
READINGS_OF_A_PART = 400_000
SERVING_MARGIN_MS = 2_700_000  # over serving_gap_max_ms and the ten minutes around it
# by the column that owns the time of an interval: the nodes concerned
_NODES = {
    "node": "select distinct hour, cluster, node from temp.differing",
    "attempt_key": """select distinct hour, cluster, node
        from temp.differing
        inner join (
            select attempt_key, job_run_key from intermediate.int_attempts
            union
            select attempt_key, job_run_key from temp.attempts_before
        ) using (attempt_key)
        inner join intermediate.int_holds using (job_run_key)""",
    # int_serving_gpus has the GPUs that an engine got or lost
    "endpoint": """select distinct hour, cluster, node
        from temp.differing
        inner join intermediate.int_serving_gpus using (cluster, endpoint)""",
}
_OWNER_COLUMNS = {
    "node": "cluster, node,",
    "attempt_key": "attempt_key,",
    "endpoint": "cluster, endpoint,",
}

_ASKED = """select job_run_key, cluster, partition, gpu_type_requested, gpus_requested,
        eligible_ms as start_ms, coalesce(start_ms, record_end_ms) as end_ms
    from {} where eligible_ms is not null and gpus_requested > 0"""
_HELD_CPUS = """select job_run_key, cluster, nodes, cpus, start_ms, end_ms
    from {} where start_ms is not null and cpus > 0"""


def changed_hours(
    cursor: duckdb.DuckDBPyConnection,
    new: str,
    old: str,
    bounds: tuple[str, str],
    owner: str | None = None,
) -> NodeHours:
    """Return the hours in which the intervals of select `new` differ from those of `old`.

    Time differs between the first and the last moment at which, in an hour, the beginnings and
    ends of intervals of the same attributes do not cancel: a job that ends after three days
    reopens its last hour, not three days, and one that is seen to run on only what was added.
    An end that is null, or is planned to come later, is compared at the end of the evidence.

    owner: the column that owns the time, `node`, `attempt_key` or `endpoint`: only its nodes are
    concerned.
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
            {_OWNER_COLUMNS[owner] if owner else ""}
            unnest([
                (from_ms - {IDLE_MARGIN_MS}) // {HOUR_MS},
                hour,
                (to_ms + {IDLE_MARGIN_MS}) // {HOUR_MS}
            ]) as hour
        from stretches"""
    )
    if owner is None:
        return NodeHours(_hours(cursor, "select distinct hour from temp.differing"))
    rows = cursor.execute(_NODES[owner]).fetchall()
    return NodeHours(of_nodes=((hour, (cluster, node)) for hour, cluster, node in rows))


def loaded_tables(cursor: duckdb.DuckDBPyConnection, sequence: int | None) -> set[str]:
    """Return the tables that were loaded into since load `sequence`, with their layer."""
    rows = cursor.execute(
        "select distinct table_name from state.ingested where sequence > $1",
        [-1 if sequence is None else sequence],
    ).fetchall()
    tables = models.base_tables()
    return {tables[name].qualified_name for (name,) in rows if name in tables}


def changed_rows(cursor: duckdb.DuckDBPyConnection, new: str, old: str) -> NodeHours:
    """Return where select `new` gives other rows than `old`, by their hour_ms, cluster and node."""
    rows = cursor.execute(
        f"select distinct hour_ms // {HOUR_MS}, cluster, node from ({differences(new, old)})"
    ).fetchall()
    return NodeHours(of_nodes=((hour, (cluster, node)) for hour, cluster, node in rows))


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


def _hours(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: object = None) -> Hours:
    return {hour for (hour,) in cursor.execute(sql, parameters).fetchall()}


def job_run_hours(cursor: duckdb.DuckDBPyConnection, new: str, old: str) -> NodeHours:
    """Return the hours in which demand or held CPUs differ between two tables of job runs."""
    bounds = ("start_ms", "end_ms")
    return changed_hours(cursor, _ASKED.format(new), _ASKED.format(old), bounds) | changed_hours(
        cursor, _HELD_CPUS.format(new), _HELD_CPUS.format(old), bounds
    )


def set_constants(cursor: duckdb.DuckDBPyConnection) -> None:
    """Set the constants that a build compares readings with; needs the watermarks of readings."""
    cursor.execute(f"set variable reading_margin_ms = {reading_margin_ms(cursor)}")


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
    borders = borders_of_parts(first, after, most)
    cursor.execute(f"set variable build_reading_parts = {borders}")
    return len(borders) - 1


def borders_of_parts(first: int, after: int, most: int) -> list[int]:
    """Return where the parts of the readings from `first` to before `after` begin, and the end."""
    parts = max(1, min(most, (after - first) // READINGS_OF_A_PART))
    return [first + part * (after - first) // parts for part in range(parts + 1)]


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
        where table_name in ('gpu_samples', 'gpu_samples_other', 'gpu_processes', 'node_samples',
                'link_samples')
            and window_start_at is not null
            and sequence > $2""",
        [reading_margin_ms(cursor), -1 if sequence is None else sequence],
    )


def serving_hours(cursor: duckdb.DuckDBPyConnection, sequence: int | None) -> Hours:
    """Return the hours of serving engines that may have changed since load `sequence`.

    A sample covers the time since the one before it, and a request lasts up to an hour.
    """
    return _hours(
        cursor,
        """select distinct unnest(range(
            (to_ms(window_start_at) - $1) // 3600000, (to_ms(window_end_at) + 2 * $1) // 3600000 + 1
        ))
        from state.ingested
        where table_name in ('serving_samples', 'serving_histograms', 'serving_requests')
            and window_start_at is not null
            and sequence > $2""",
        [SERVING_MARGIN_MS, -1 if sequence is None else sequence],
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

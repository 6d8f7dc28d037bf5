"""Clusters of job logs, which name none: that of the job whose id the log has.

Where the database has one cluster and its accounting one job of this id, the log is that job's.
That is likely, not certain: `state.claimed_logs` has these logs, which the data quality view names.
A build looks for them, so that it does not matter what came first, or whether a log was ingested,
followed or pulled from a lake.
"""

from collections.abc import Set as AbstractSet
from typing import Final

import duckdb

TABLES: Final = {"raw.job_events", "raw.job_runs"}
CLUSTERS: Final = """select cluster from raw.job_runs where cluster is not null
    union select cluster from raw.gpus where cluster is not null
    union select cluster from raw.nodes where cluster is not null"""
CLAIMABLE: Final = """create or replace temp table claimable as
    with logs as (
        select distinct run_id from raw.job_events where source = 'job-log' and cluster is null
    ), found as (
        select run_id, job_id from logs inner join raw.job_runs as jobs on jobs.job_id = run_id
        union
        select run_id, job_id from logs inner join raw.job_runs as jobs on jobs.job_id_raw = run_id
    )
    select run_id from found group by run_id having count(*) = 1"""
OF_LOG: Final = """source = 'job-log' and cluster is null
    and run_id in (select run_id from temp.claimable)"""
KEY: Final = ("run_id", "attempt", "rank", "host", "pid", "ts", "event", "step", "phase", "kind")


def claim(cursor: duckdb.DuckDBPyConnection, loaded: AbstractSet[str], since: int | None) -> bool:
    """Give logs without a cluster that of their job; say whether a build has used such rows.

    loaded: tables with new rows; since: the last load of the previous build.
    """
    clusters = cursor.execute(CLUSTERS).fetchall() if loaded & TABLES else []
    if len(clusters) != 1:
        return False
    cursor.execute(CLAIMABLE)
    before = cursor.execute(
        f"select count(*) filter (coalesce(load_sequence, 0) <= $1), count(*) "
        f"from raw.job_events where {OF_LOG}",
        [-1 if since is None else since],
    ).fetchall()
    built, rows = before[0]
    if not rows:
        return False
    same = " and ".join(f"known.{name} is not distinct from events.{name}" for name in KEY)
    cursor.execute(  # a log that is read once more after a restart
        f"""delete from raw.job_events as events where {OF_LOG} and exists (
            from raw.job_events as known
            where known.source = 'job-log' and known.cluster = $1 and {same}
        )""",
        list(clusters[0]),
    )
    cursor.execute(f"update raw.job_events set cluster = $1 where {OF_LOG}", list(clusters[0]))
    cursor.execute(
        """insert into state.claimed_logs select $1, run_id from temp.claimable
        where run_id not in (select run_id from state.claimed_logs)""",
        list(clusters[0]),
    )
    return bool(built)

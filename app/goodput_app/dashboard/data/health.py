"""Health: errors of nodes by day, the nodes that cost most, incidents, time between failures."""

from dataclasses import replace

import polars as pl

from goodput_app.access import rows
from goodput_app.dashboard.data.marts import in_order, read
from goodput_queries.scope import Scope

DAYS_SHOWN = 31
NODES_DRAWN = 24
ROWS_SHOWN = 500


def kinds() -> pl.DataFrame:
    """Return the kinds of errors with label, unit and definition, in their order."""
    return read("select * from reference.health_kinds order by position")


def node_days(scope: Scope, kind: str) -> pl.DataFrame:
    """Return one kind of error of the nodes with most of it, by day; nodes: how many were read.

    Of a longer window the last days. A day without a row was not read.
    """
    return read(
        f"""with days as (
            select
                *,
                sum(value) over (partition by cluster, node) as of_node,
                max(day_at) over () as last_at
            from marts.health_by_node_day
            where kind = $1
        )

        select
            cluster,
            node,
            day_at,
            value,
            gpus,
            of_node,
            dense_rank() over (order by of_node desc, cluster, node) as place,
            (select count(distinct (cluster, node)) from days) as nodes,
            (select count(distinct day_at) from days) as days
        from days
        where day_at > last_at - interval {DAYS_SHOWN} day
        qualify place <= {NODES_DRAWN}
        order by place, day_at""",
        scope,
        kind,
    )


def kinds_read(scope: Scope) -> pl.DataFrame:
    """Return the kinds of errors that were read on any day of any node."""
    return read("select distinct kind from marts.health_by_node_day", scope)


def nodes(scope: Scope) -> pl.DataFrame:
    """Return the nodes that cost most; total: how many nodes there are."""
    return read(
        f"select *, count(*) over () as total from marts.node_health order by place, cluster, node "
        f"limit {ROWS_SHOWN}",
        scope,
    )


def fleet(scope: Scope) -> pl.DataFrame:
    """Return failures of nodes and the time between them, by cluster."""
    return read("select * from marts.fleet_reliability order by cluster", scope)


def by_job_size(scope: Scope) -> pl.DataFrame:
    """Return the time between failures of attempts by their number of GPUs."""
    return read("select * from marts.reliability_by_job_size order by cluster, gpus_to", scope)


def xids(scope: Scope) -> pl.DataFrame:
    """Return Xids by code, the one with most incidents first."""
    return read("select * from marts.xids_by_code order by incidents desc, code", scope)


def incidents(scope: Scope) -> pl.DataFrame:
    """Return the latest incidents of GPUs; total: how many there are."""
    return read(
        "select *, array_to_string(codes, ' ') as all_codes, count(*) over () as total "
        f"from marts.gpu_incidents order by start_at desc, cluster, node, device "
        f"limit {ROWS_SHOWN}",
        scope,
    )


def fabric_incidents(scope: Scope) -> pl.DataFrame:
    """Return faults of many links at one time, the latest first."""
    return read(
        "select *, array_to_string(node_names, ', ') as members_at, "
        "array_to_string(run_names, ', ') as touched_runs "
        f"from marts.fabric_incidents order by start_at desc, cluster, kind limit {ROWS_SHOWN}",
        scope,
    )


NO_OUTAGES = pl.DataFrame(
    schema={
        "cluster": pl.String, "node": pl.String, "state": pl.String, "start_at": pl.Datetime,
        "end_at": pl.Datetime, "out_at": pl.Datetime, "reason": pl.String, "sources": pl.String,
    }
)  # fmt: skip


def outages(scope: Scope) -> pl.DataFrame:
    """Return outages of nodes: those that are open first, then the latest; total: how many."""
    return read(
        "select *, outage_ms / 1000.0 as outage_s, count(*) over () as total "
        "from marts.node_outages order by end_at is null desc, start_at desc, cluster, node "
        f"limit {ROWS_SHOWN}",
        scope,
    )


def repairs(scope: Scope) -> pl.DataFrame:
    """Return repairs of nodes: those that go on first, then the latest."""
    return in_order("marts.repairs", scope, "end_at is not null, start_at desc, cluster, node")


def outages_seen(scope: Scope) -> pl.DataFrame:
    """Return `outages` to who sees all teams, to others none: they are not of a team."""
    return outages(scope) if rows.sees_all(scope) else NO_OUTAGES


def node_tests(scope: Scope) -> pl.DataFrame:
    """Return the latest results of tests of nodes, to who sees all teams; to others none."""
    shown = ROWS_SHOWN if rows.sees_all(scope) else 0
    return read(
        "select * from marts.node_tests "
        f"order by event_at desc, cluster, node, test, gpu_indices limit {shown}",
        scope,
    )


def settings(scope: Scope) -> pl.DataFrame:
    """Return settings of the scope's run on its nodes, else of its node; those that differ first.

    Of a node without a snapshot before the end of the time range those of the first one after it.
    To who sees some teams alone, those of a run of theirs.
    """
    sql = """select * from marts.node_settings where (run_key is null) = (chosen_run() is null)
        order by problem is null, not is_different, setting, node"""
    found = read(sql, scope)
    if found.is_empty() and scope.node and rows.sees_all(scope):
        of = "select min(at_ms) from staging.stg_node_settings where node = $1 and at_ms >= $2"
        if (after_ms := read(of, Scope(), scope.node, scope.to_ms).item()) is not None:
            return read(sql, replace(scope, to_ms=after_ms + 1))
    return found


def drivers(scope: Scope) -> pl.DataFrame:
    """Return GPU time and errors by GPU model and driver, the known versions first."""
    return read(
        "select * from marts.driver_versions "
        "order by driver_version is null, cluster, gpu_model, driver_version, vbios_version",
        scope,
    )


def memory_errors(scope: Scope) -> pl.DataFrame:
    """Return by how much the counters of memory errors of GPUs rose by hour, the latest first."""
    return read(
        "select * from marts.gpu_memory_errors order by hour_at desc nulls last, kind", scope
    )


def throttled_gpus(scope: Scope) -> pl.DataFrame:
    """Return how often GPUs were slowed and how hot they were, the most often slowed first."""
    return read(
        "select * from marts.throttled_gpus "
        "order by throttled_ratio desc, throttled_hours desc, gpu_uuid, reason",
        scope,
    )

"""Health: errors of nodes by day, the nodes that cost most, incidents, time between failures."""

from dataclasses import replace

import polars as pl

from goodput_app.access import rows
from goodput_app.dashboard.data.marts import COUNTED, read, reader
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
    """Return the kinds of errors that were read on any day of any node, and `gpus`: on how many."""
    return read(
        """select kind, sum(gpus)::bigint as gpus
        from (
            select kind, max(gpus) as gpus
            from marts.health_by_node_day group by kind, cluster, node
        )
        group by kind""",
        scope,
    )


# first what somebody must act on
nodes = reader(
    "node_health",
    "verdict not in ('Replace', 'Drain') nulls last, place, cluster, node",
    columns=COUNTED,
    limit=ROWS_SHOWN,
)
fleet = reader("fleet_reliability", "cluster")
by_job_size = reader("reliability_by_job_size", "cluster, gpus_to")
by_job_age = reader("reliability_by_job_age", "cluster, age_from_s")
xids = reader("xids_by_code", "incidents desc, code")
incidents = reader(
    "gpu_incidents",
    "start_at desc, cluster, node, device",
    columns=f"{COUNTED}, array_to_string(codes, ' ') as all_codes",
    limit=ROWS_SHOWN,
)
fabric_incidents = reader(
    "fabric_incidents",
    "start_at desc, cluster, kind",
    columns="*, array_to_string(node_names, ', ') as members_at, "
    "array_to_string(run_names, ', ') as touched_runs",
    limit=ROWS_SHOWN,
)


NO_OUTAGES = pl.DataFrame(
    schema={
        "cluster": pl.String, "node": pl.String, "state": pl.String, "start_at": pl.Datetime,
        "end_at": pl.Datetime, "out_at": pl.Datetime, "reason": pl.String, "sources": pl.String,
    }
)  # fmt: skip


# those that are open first, then the latest
outages = reader(
    "node_outages",
    "end_at is null desc, start_at desc, cluster, node",
    columns=f"{COUNTED}, outage_ms / 1000.0 as outage_s",
    limit=ROWS_SHOWN,
)
repairs = reader("repairs", "end_at is not null, start_at desc, cluster, node")
acts_by_cause = reader(
    "acts_by_cause", "coalesce(act_ms, 0) + untouched_ms desc, acts desc, actor, cause, kind"
)
acts = reader(
    "acts", "start_at desc, cluster, kind, node, run_key", columns=COUNTED, limit=ROWS_SHOWN
)
silent_corruption = reader(
    "silent_corruption",
    "healed_without desc, not_finite + diverged desc, failed_tests desc nulls last, cluster, node",
)


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


drivers = reader(
    "driver_versions", "driver_version is null, cluster, gpu_model, driver_version, vbios_version"
)
memory_errors = reader("gpu_memory_errors", "hour_at desc nulls last, kind")
throttled_gpus = reader(
    "throttled_gpus", "throttled_ratio desc, throttled_hours desc, gpu_uuid, reason"
)

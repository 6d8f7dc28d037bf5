"""Energy: power over time, of idle GPUs, of accounts with its carbon, and against limits."""

from dataclasses import replace
from typing import Literal

import polars as pl

from goodput_app.dashboard.data import marts, metrics
from goodput_queries.scope import Scope

Level = Literal["team", "rack", "node"]

BUCKETS_MAX = 96
GPU_BUCKETS_MAX = 250_000  # of all GPUs together: what 10,000 of them have in a day of hours
FINEST_MS = 60_000  # below it readings leave buckets empty
NODES_SHOWN = 2_000
RUNS_SHOWN = 200


def bucket_ms(scope: Scope, gpus: int) -> int:
    """Return the bucket of power over time: of readings where they are few, else of the roll-up.

    The more GPUs, the longer it is: each of them is read in each bucket.
    """
    most = max(1, min(BUCKETS_MAX, GPU_BUCKETS_MAX // max(1, gpus)))
    read = metrics.resolution_of(scope, gpus, most)
    return max(read.bin_ms, FINEST_MS if read.is_raw else metrics.ROLLED_UP_MS)


def power(scope: Scope, level: Level, bucket: int) -> pl.DataFrame:
    """Return rows of marts.power_over_time of one level, with `at` for `start_ms`."""
    return marts.read(
        "select * exclude (level, start_ms), from_ms(start_ms) as at from marts.power_over_time "
        "where level = $1 order by start_ms, cluster, availability, name nulls last",
        replace(scope, user=None, run=None, partition=None, bucket_ms=bucket),
        level,
    )


def accounts(scope: Scope) -> pl.DataFrame:
    """Return energy and carbon by account, most energy first; then what was not allocated.

    Energy is stored by owner and not by node: the scope's node does not restrict it.
    """
    return marts.read(
        "select * from marts.energy_by_account order by availability <> 'held', "
        "energy_mj desc nulls last, gpu_ms desc, cluster, availability, team",
        replace(scope, node=None, gpu_uuid=None, bucket_ms=None),
    )


def idle(scope: Scope) -> pl.DataFrame:
    """Return what idle GPUs draw by model and category, most energy first."""
    order_by = "energy_kwh desc nulls last, gpu_ms desc, cluster, gpu_model, category"
    return marts.in_order("marts.idle_power", scope, order_by)


def headroom(scope: Scope) -> pl.DataFrame:
    """Return the nodes, the nearest to the limit first: at most NODES_SHOWN; nodes: of all."""
    return marts.read(
        "select *, count(*) over () as nodes from marts.power_headroom "
        "order by p99_limit_ratio desc nulls last, slowdown_margin_c nulls last, cluster, node, "
        f"gpu_model limit {NODES_SHOWN}",
        replace(scope, team=None, user=None, run=None, partition=None, bucket_ms=None),
    )


def executing(scope: Scope) -> pl.DataFrame:
    """Return how long loaded programs did nothing, and what that drew, most energy first.

    Rows: by cluster, team and model. Columns: those of marts.executing_idle.
    """
    return marts.read(
        """select cluster, team, gpu_model, sum(held_ms)::bigint as held_ms,
            sum(idle_ms)::bigint as idle_ms, sum(idle_ms) / sum(held_ms) as idle_ratio,
            sum(power_w * measured_ms) / nullif(sum(measured_ms), 0) as power_w,
            sum(energy_kwh) as energy_kwh, sum(measured_ms)::bigint as measured_ms
        from marts.executing_idle
        group by cluster, team, gpu_model
        having sum(idle_ms) > 0
        order by energy_kwh desc nulls last, idle_ms desc, cluster, team, gpu_model""",
        replace(scope, bucket_ms=None),
    )


def runs(scope: Scope) -> pl.DataFrame:
    """Return the energy of a step by run, most energy first: at most RUNS_SHOWN."""
    return marts.read(
        "select * from marts.run_energy order by energy_kwh desc nulls last, run_key "
        f"limit {RUNS_SHOWN}",
        replace(scope, node=None, gpu_uuid=None, bucket_ms=None),
    )


def by_cap(scope: Scope) -> pl.DataFrame:
    """Return work per joule by power cap."""
    order_by = "job_name, cluster, gpu_model, gpus, work_unit, power_cap_w desc"
    return marts.in_order("marts.work_by_power_cap", scope, order_by)


def feeds(scope: Scope) -> pl.DataFrame:
    """Return the power feeds, those over their capacity or nearest to it first."""
    return marts.read(
        "select * from marts.feed_check order by margin_w / capacity_w nulls last, "
        "coalesce(failover_w, peak_w) desc nulls last, cluster, feed",
        Scope(from_ms=scope.from_ms, to_ms=scope.to_ms, cluster=scope.cluster),
    )


def heat(scope: Scope) -> pl.DataFrame:
    """Return the heat margin of racks, the least first."""
    return marts.read(
        "select * from marts.heat_margin "
        "order by slowdown_margin_c nulls last, gpu_temperature_c desc nulls last, cluster, rack",
        replace(scope, team=None, user=None, run=None, partition=None, bucket_ms=None),
    )

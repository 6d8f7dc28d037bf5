"""Energy: power over time, of idle GPUs, of accounts with its carbon, and against limits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import polars as pl

from goodput_app.dashboard.data import ledger_groups, marts, metrics
from goodput_app.dashboard.data.ledger_groups import Changed
from goodput_app.weekly.like_for_like import Baseline
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


# most energy first, then what was not allocated; energy is stored by owner, not by node
accounts = marts.reader(
    "energy_by_account",
    "availability <> 'held', energy_mj desc nulls last, gpu_ms desc, cluster, availability, team",
    of=marts.of_any_place,
)


def changed(scope: Scope, baseline: Baseline, by: Sequence[str]) -> Changed | None:
    """Return how much more or less energy each account took, like for like."""

    def parts_of(window: Scope) -> pl.DataFrame:
        return accounts(window).rename({"measured_ms": "covered_ms"})

    return ledger_groups.changed(scope, baseline, parts_of, by, "energy_kwh")


idle = marts.reader(
    "idle_power", "energy_kwh desc nulls last, gpu_ms desc, cluster, gpu_model, category"
)
idle_nodes = marts.reader(
    "idle_nodes",
    "energy_kwh desc nulls last, idle_s desc, cluster, node",
    limit=NODES_SHOWN,
    of=marts.of_any_owner,
)
# the nearest to the limit first; nodes: of all
headroom = marts.reader(
    "power_headroom",
    "p99_limit_ratio desc nulls last, slowdown_margin_c nulls last, cluster, node, gpu_model",
    columns="*, count(*) over () as nodes",
    limit=NODES_SHOWN,
    of=marts.of_any_owner,
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


runs = marts.reader(
    "run_energy", "energy_kwh desc nulls last, run_key", limit=RUNS_SHOWN, of=marts.of_any_place
)
by_cap = marts.reader(
    "work_by_power_cap", "job_name, cluster, gpu_model, gpus, work_unit, power_cap_w desc"
)
feeds = marts.reader(
    "feed_check",
    "margin_w / capacity_w nulls last, coalesce(failover_w, peak_w) desc nulls last, cluster, feed",
    of=marts.of_cluster,
)
heat = marts.reader(
    "heat_margin",
    "slowdown_margin_c nulls last, gpu_temperature_c desc nulls last, cluster, rack",
    of=marts.of_any_owner,
)

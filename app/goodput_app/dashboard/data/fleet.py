"""The fleet as a whole: racks, the state of each GPU, what is not allocated, and bins over time.

Rows of charts over time are GPUs, nodes or racks: as fine as can be seen.
"""

from collections.abc import Sequence
from typing import Literal

import polars as pl

from goodput_app.dashboard.data import marts, metrics
from goodput_queries.scope import Scope

Level = Literal["gpu", "node", "rack"]

ROWS_MAX = 128  # of a heatmap
LANES_MAX = 20  # of shares; what more there is is one lane
BINS_MAX = 96
CELLS_MAX = 480  # of shares: of each bin several bars
OTHERS = ""  # key of the lane of all rows that have none of their own
SEGMENTS_GPU_HOURS_MAX = 50_000  # of more, bins of categories are hours
RUNS_DRAWN = 25
BARS_MAX = 1_000
BUSY_SHOWN = 500
SLOWDOWNS = ("hw_slowdown", "sw_thermal", "hw_thermal", "power_brake")
COMPARED = (
    "gpu_busy_ratio",
    "tensor_active_ratio",
    "power_w",
    "gpu_temperature_c",
    "memory_used_bytes",
)
_KEYS: dict[Level, str] = {
    "gpu": "gpu_uuid",
    "node": "cluster || '/' || node",
    "rack": "cluster || '/' || coalesce(rack, '')",
}
_BINS: dict[Level, str] = {
    "gpu": "marts.category_bins",
    "node": "marts.node_category_bins",
    "rack": "marts.node_category_bins",
}
# of GPUs a test of each row, which is made before their ledger is cut into bins
_AMONG: dict[Level, str] = {
    "gpu": "list_contains($1::varchar[], key)",
    "node": "key in (select unnest($1::varchar[]))",
    "rack": "key in (select unnest($1::varchar[]))",
}
_RACK = "left join staging.stg_node_racks as racks using (cluster, node)"


def gpu_states(scope: Scope) -> pl.DataFrame:
    """Return the state of each GPU at the end of the window, rack by rack.

    `gpu_key`, `node_key` and `rack_key` are what rows of bins are called.
    """
    keys = ", ".join(f"{expression} as {level}_key" for level, expression in _KEYS.items())
    return marts.read(
        f"select *, {keys} from marts.gpu_states "
        "order by cluster, rack nulls last, node, gpu_index nulls last, gpu_uuid",
        marts.of_any_owner(scope),
    )


racks = marts.reader(
    "racks",
    "wasted_cost desc nulls last, wasted_ms desc, cluster, rack nulls last",
    columns=f"*, {_KEYS['rack']} as rack_key",
    of=marts.of_any_owner,
)
# first what a job can have
unallocated = marts.reader(
    "unallocated_gpus",
    "cluster, is_schedulable desc, largest_block desc nulls last, units desc, partition, "
    "gpu_model, mig_profile, why",
    of=marts.of_any_owner,
)


def busy_unallocated(scope: Scope) -> pl.DataFrame:
    """Return the GPUs that were active without an allocation, the longest first."""
    from_ms, to_ms = metrics.bounds(scope)
    return marts.read(
        f"""select any_value(busy.cluster) as cluster, any_value(busy.node) as node, busy.gpu_uuid,
            any_value(busy.gpu_model) as gpu_model,
            sum(least(busy.end_ms, $2) - greatest(busy.start_ms, $1)) / 1000 as busy_s,
            from_ms(least(max(busy.end_ms), $2)) as last_at, count(*) over () as total
        from marts.busy_unallocated as busy
        where busy.hour_ms > $1 - 3600000 and busy.hour_ms < $2
            and busy.end_ms > $1 and busy.start_ms < $2
            and in_place(busy.cluster, busy.node, busy.gpu_uuid, busy.gpu_model)
        group by busy.gpu_uuid
        order by busy_s desc, busy.gpu_uuid limit {BUSY_SHOWN}""",
        marts.of_any_owner(scope),
        from_ms,
        to_ms,
    )


def categories(
    scope: Scope, level: Level, rows: Sequence[str], bin_ms: int, others: Sequence[str] = ()
) -> pl.DataFrame:
    """Return the ledger of each row in bins, and that of all others in one row.

    Columns: key (OTHERS: of the others), at, category, label, colour, gpu_ms.
    """
    return marts.read(
        f"""with bins as (
            select {_KEYS[level]} as key, start_ms, category, gpu_ms
            from {_BINS[level]} {_RACK}
        )
        select case when list_contains($2::varchar[], key) then key else '{OTHERS}' end as key,
            from_ms(start_ms) as at, category, label, colour, sum(gpu_ms)::bigint as gpu_ms
        from bins
        inner join reference.gpu_second_categories using (category)
        where {_AMONG[level]} and gpu_ms > 0
        group by all
        order by 1, 2, 3""",
        marts.of_any_owner(scope, bin_ms),
        (*rows, *others),
        tuple(rows),
    )


def wasted(scope: Scope, level: Level) -> pl.DataFrame:
    """Return `key` and `wasted_ms`, GPU time in badput categories, of each row."""
    return marts.read(
        f"""select {_KEYS[level]} as key, sum(gpu_ms)::bigint as wasted_ms
        from {_BINS[level]} {_RACK}
        inner join reference.gpu_second_categories using (category)
        where kind_of(category, kind) = 'badput'
        group by all""",
        marts.of_any_owner(scope, 86_400_000),
    )


def metric(
    scope: Scope, level: Level, rows: Sequence[str], name: str, read: metrics.Resolution
) -> pl.DataFrame:
    """Return `key`, `at` and `value` of a metric: of nodes and racks from the ten-minute roll-up.

    Of several GPUs their mean, of temperatures the highest; of `errors` the incidents that began.
    """
    if name == "errors":
        return _errors(scope, level, rows, read)
    if level == "gpu":
        series = metrics.gpu_series(scope, rows, read)
        used = pl.col("memory_used_bytes")
        of = {
            "gpu_temperature_c": pl.col("gpu_temperature_c_max").max(),
            "memory_used_bytes": pl.when(used.count() > 0).then(used.sum()),
            "throttled_ratio": pl.max_horizontal(SLOWDOWNS).max(),
        }.get(name, pl.col(name).mean())  # fmt: skip
        return series.group_by(pl.col("gpu_uuid").alias("key"), "at", maintain_order=True).agg(
            value=of
        )
    value = {
        "gpu_temperature_c": "max(gpu_temperature_c.max)",
        "memory_used_bytes": (
            "sum(memory_used_bytes.mean) / count(distinct (gpu_uuid, start_ms)) "
            "filter (where memory_used_bytes.n > 0)"
        ),
        "throttled_ratio": "avg(slowed_ratio(clocks_event_reasons))",
    }.get(name, f"avg({name}.mean)")
    return marts.read(
        f"""select {_KEYS[level]} as key, from_ms(start_ms // {read.bin_ms} * {read.bin_ms}) as at,
            ({value})::float as value
        from marts.gpu_metrics {_RACK}
        where node is not null
        group by all
        having key in (select unnest($1::varchar[]))
        order by 1, 2""",
        marts.of_any_owner(scope),
        tuple(rows),
    )


def _errors(
    scope: Scope, level: Level, rows: Sequence[str], read: metrics.Resolution
) -> pl.DataFrame:
    """Return incidents of hardware or driver by their start; 0 in bins in which a GPU was read."""
    bin_of = f"// {read.bin_ms} * {read.bin_ms}"
    return marts.read(
        f"""with found as (
            select distinct {_KEYS[level]} as key, start_ms {bin_of} as bin_ms, 0 as errors
            from marts.gpu_metrics {_RACK}
            where node is not null
            union all
            select {_KEYS[level]}, epoch_ms(start_at) {bin_of}, 1
            from marts.gpu_incidents {_RACK}
            where class = 'hardware' and gpu_uuid is not null
        )
        select key, from_ms(bin_ms) as at, sum(errors)::float as value
        from found
        where key in (select unnest($1::varchar[]))
        group by key, bin_ms
        order by 1, 2""",
        marts.of_any_owner(scope),
        tuple(rows),
    )


def deviations(scope: Scope, level: Level, name: str | None) -> pl.DataFrame:
    """Return `key` and `deviation`: mean distance of a row's GPUs from their job's other GPUs.

    By a metric that the roll-up of allocated GPUs has, else by use. GPUs of jobs of one GPU have
    none.
    """
    column = name if name in COMPARED else "use_ratio"
    return marts.read(
        f"""with bins as (
            select job_run_key, cluster, node, gpu_uuid, start_ms, {column} as value
            from intermediate.int_held_bins
            where {column} is not null
        ),
        gangs as (
            select job_run_key, start_ms, sum(value) as total, count(*) as gpus
            from bins group by all having count(*) > 1
        )
        select {_KEYS[level]} as key,
            avg(abs(value - (total - value) / (gpus - 1))) as deviation
        from bins
        inner join gangs using (job_run_key, start_ms)
        {_RACK}
        group by 1""",
        marts.of_any_owner(scope),
    )


def allocations(scope: Scope, nodes: Sequence[str] | None) -> pl.DataFrame:
    """Return when job runs had GPUs of the scope: a bar for each, of the runs with most GPU time.

    nodes: of these alone, as `node_key`; None: of all
    """
    return marts.read(
        f"""with held as materialized (
            select * from marts.gpu_allocations
            where run_key is not null and end_at > start_at
                and ($1::varchar[] is null or {_KEYS["node"]} in (select unnest($1::varchar[])))
        ),
        runs as (
            select run_key, sum(epoch_ms(end_at - start_at)) as run_ms, count(*) over () as runs
            from held group by run_key order by run_ms desc, run_key limit {RUNS_DRAWN}
        )
        select run_key, any_value(run_id) as run_id, any_value(job_name) as job_name,
            any_value(team) as team, job_run_key, min(start_at) as start_at,
            max(end_at) as end_at, count(distinct gpu_uuid) as gpus,
            sum(epoch_ms(end_at - start_at)) as gpu_ms, any_value(runs.runs) as runs
        from held inner join runs using (run_key)
        group by run_key, job_run_key
        order by min(min(start_at)) over (partition by run_key), run_key, min(start_at)
        limit {BARS_MAX}""",
        marts.of_any_owner(scope),
        None if nodes is None else tuple(nodes),
    )

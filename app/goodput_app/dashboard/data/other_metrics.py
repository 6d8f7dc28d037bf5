"""Metrics without a column of their own: which there are, and one of them over time."""

import polars as pl

from goodput_app.dashboard.data import marts, metrics
from goodput_queries.scope import Scope

BEFORE_MS = 3_600_000  # how far back the value before the window is looked for
# of two sources of a GPU the one with more samples
_SAMPLES = f"""samples as (
        select * exclude (in_all)
        from (
            select *, count(*) over (partition by gpu_uuid, gpu_instance, source) as in_all
            from staging.stg_gpu_samples_other
            where metric = $1 and value is not null
                and ts >= from_ms($2 - {BEFORE_MS}) and ts < from_ms($3)
                and gpu_uuid in (select gpu_uuid from marts.gpus)
        )
        qualify dense_rank() over (
            partition by gpu_uuid, gpu_instance order by in_all desc, source) = 1
    )"""
_GAUGE = """select gpu_uuid, ts_ms, value from samples where ts_ms >= $2"""
# a counter that is lower than before was reset, and counts again from 0
_COUNTER = """select
        gpu_uuid, ts_ms, value - case when value >= before then before else 0 end as value
    from (
        select *, lag(value) over (
            partition by gpu_uuid, gpu_instance order by ts_ms) as before
        from samples
    )
    where before is not null and ts_ms >= $2"""


catalogue = marts.reader("other_metrics", "metric", of=marts.of_any_owner)


def over_time(scope: Scope, metric: str, *, is_counter: bool) -> pl.DataFrame:
    """Return a metric in bins: at, mean, low and high over the GPUs' values, and `gpus`.

    Of a counter the values are increases: `mean` is their sum over all GPUs, `low` and `high` those
    of single GPUs.
    """
    from_ms, to_ms = metrics.bounds(scope)
    bin_ms = metrics.resolution(to_ms - from_ms, 1).bin_ms
    of_values = "sum(value)" if is_counter else "avg(value)"
    return marts.read(
        f"""with {_SAMPLES},
        changes as ({_COUNTER if is_counter else _GAUGE}),
        of_gpus as (
            select gpu_uuid, ts_ms // {bin_ms} * {bin_ms} as bin_ms, {of_values} as value,
                min(value) as low, max(value) as high
            from changes group by all
        )
        select from_ms(bin_ms) as at, {of_values} as mean,
            {"min(value)" if is_counter else "min(low)"} as low,
            {"max(value)" if is_counter else "max(high)"} as high, count(*) as gpus
        from of_gpus group by bin_ms order by bin_ms""",
        marts.of_any_owner(scope),
        *(metric, from_ms, to_ms),
    )


def limits(scope: Scope, gpu: str) -> dict[str, float]:
    """Return the limits that a GPU last reported in the window: metric -> value."""
    found = marts.read(
        """select metric, arg_max(value, ts) as value
        from staging.stg_gpu_samples_other
        where gpu_uuid = $1 and value is not null and ts >= from_ms($2) and ts < from_ms($3)
            and metric in ('power_limit_enforced_w', 'power_limit_w', 'slowdown_temperature_c')
        group by metric order by metric""",
        marts.of_any_owner(scope),
        *(gpu, scope.from_ms, scope.to_ms),
    )
    return dict(found.iter_rows())

"""Metrics over many GPUs at once: their mean, and the range that most of them are in, in bins."""

from collections.abc import Sequence

import polars as pl

from goodput_app.access import rows
from goodput_app.dashboard.data import marts, metrics
from goodput_queries.scope import Scope

SPREAD = (0.05, 0.95)


def over_gpus(
    scope: Scope,
    read: metrics.Resolution,
    names: Sequence[str],
    held: str,
    parameter: str | None,
    by: Sequence[str] = (),
) -> pl.DataFrame:
    """Return metrics of GPUs while somebody held them, a row a bin with a sample.

    Columns: at, gpus (with samples), and of each metric the mean of the GPUs' means, `<metric>`,
    and their 5th and 95th percentile, `<metric>_low` and `_high`.
    names: the metrics. held: a select of gpu_uuid, held_from_ms, held_to_ms, in which $1 is the
    parameter; by: columns of it, for a row a bin and value of these, in their order.
    """
    keys = "".join(f"{name}, " for name in by)
    of_held = "".join(f"held.{name}, " for name in by if name != "gpu_uuid")
    from_ms, to_ms = metrics.bounds(scope)
    # of some teams only what their runs' GPUs read; who sees all is spared that join
    sees_all = rows.sees_all(scope)
    if read.is_raw:
        source = "staging.stg_gpu_samples" if sees_all else "marts.allocated_samples"
        moment, samples = "ts_ms", "count(*)"
        where = "ts >= from_ms($2) and ts < from_ms($3)"
    else:
        source = "intermediate.int_gpu_metrics" if sees_all else "marts.allocated_metrics"
        moment, samples = "start_ms", "sum(samples)"
        where = "start_ms >= $2 - 600000 and start_ms < $3"
    means = ", ".join(f"({metrics.mean_of(name, read)})::float as {name}" for name in names)
    spreads = ", ".join(
        f"avg({name})::float as {name}, "
        f"quantile_cont({name}, {SPREAD[0]})::float as {name}_low, "
        f"quantile_cont({name}, {SPREAD[1]})::float as {name}_high"
        for name in names
    )
    return marts.read(
        f"""with held as ({held}),
        of_gpus as (
            select
                {of_held}gpu_uuid, gpu_instance, source,
                {moment} // {read.bin_ms} * {read.bin_ms} as bin_ms,
                {samples} as samples, {means}
            from {source}
            inner join held using (gpu_uuid)
            where {where} and {moment} >= held_from_ms and {moment} < held_to_ms
            group by all
        ),
        chosen as (
            from of_gpus
            qualify row_number() over (
                partition by {keys}gpu_uuid, gpu_instance, bin_ms order by samples desc, source) = 1
        )
        select {keys}from_ms(bin_ms) as at, count(distinct gpu_uuid) as gpus, {spreads}
        from chosen
        group by {keys}bin_ms
        order by {keys}bin_ms""",
        scope,
        *(parameter, from_ms, to_ms),
    )


def bands(frame: pl.DataFrame, names: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Return the range of each metric as `at`, `low`, `high`; none where there is one GPU.

    frame: `over_gpus`
    """
    if frame.is_empty() or frame["gpus"].max() == 1:
        return {}
    found = {
        name: frame.select("at", low=f"{name}_low", high=f"{name}_high").drop_nulls()
        for name in names
    }
    return {name: band for name, band in found.items() if not band.is_empty()}

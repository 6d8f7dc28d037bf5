"""The telemetry stage as users of ClickHouse would write it.

At the turn of an hour it reaches back by the interval of the reading's own hour, where ours asks
that of the hour before, and of hours with fewer than two distances it asks the hour alone: the
same here, since each GPU of the fleet is read at one interval.
"""

import polars as pl
from tests.benchmarks.meter import Meter
from tests.benchmarks.telemetry_stage import HOLDS, HOUR_MS, READINGS, write

REACH = 2.5  # median distances that a reading covers (threshold sample_reach)
IDLE = 0.01  # activity at or under it is none (thresholds idle_engine_ratio, idle_busy_ratio)


CHDB = """with readings as (
    select source, gpu_uuid, gpu_instance, intDiv(toUnixTimestamp64Micro(ts), 1000) as ts_ms,
        coalesce(engine_active_ratio > {idle}, gpu_busy_ratio > {idle}) as is_active
    from file('{readings}', Parquet)
    where coalesce(engine_active_ratio, gpu_busy_ratio) is not null
        and (engine_active_ratio is not null or not is_flagged)
),
in_order as (
    select *,
        lagInFrame(toNullable(ts_ms)) over (
            partition by source, gpu_uuid, gpu_instance order by ts_ms
            rows between unbounded preceding and unbounded following
        ) as previous_ms,
        intDiv(ts_ms, {hour}) * {hour} as hour_ms
    from readings
),
intervals as (
    select source, gpu_uuid, gpu_instance, hour_ms,
        quantileExactLow(0.5)(ts_ms - previous_ms) as interval_ms
    from in_order
    where ts_ms - previous_ms <= {margin}
    group by source, gpu_uuid, gpu_instance, hour_ms
),
covered as (
    select gpu_uuid, gpu_instance, hour_ms, is_active, ts_ms as until_ms,
        greatest(
            assumeNotNull(previous_ms),
            ts_ms - toInt64(floor(coalesce(interval_ms, 0) * {reach}))
        ) as from_ms
    from in_order
    left join intervals using (source, gpu_uuid, gpu_instance, hour_ms)
    where previous_ms is not null
),
pieces as (
    select gpu_uuid, gpu_instance, is_active, part.1 as hour_ms, part.2 as from_ms,
        part.3 as until_ms
    from (
        select gpu_uuid, gpu_instance, is_active,
            arrayJoin(if(
                from_ms < hour_ms,
                [(hour_ms, hour_ms, until_ms),
                 (hour_ms - {hour}, greatest(from_ms, hour_ms - {hour}), hour_ms)],
                [(hour_ms, from_ms, until_ms)]
            )) as part
        from covered
    )
),
cells as (
    select gpu_uuid, gpu_instance, job_run_key, cell_ms as hour_ms,
        greatest(start_ms, cell_ms) as cell_start_ms, least(end_ms, cell_ms + {hour}) as cell_end_ms
    from file('{holds}', Parquet)
    array join range(intDiv(start_ms, {hour}) * {hour}, end_ms, {hour}) as cell_ms
),
seen as (
    select gpu_uuid, gpu_instance, job_run_key, hour_ms,
        sumIf(least(cell_end_ms, until_ms) - greatest(cell_start_ms, from_ms), is_active)
            as active_ms,
        sumIf(least(cell_end_ms, until_ms) - greatest(cell_start_ms, from_ms), not is_active)
            as idle_ms
    from pieces
    inner join cells using (gpu_uuid, gpu_instance, hour_ms)
    where from_ms < cell_end_ms and until_ms > cell_start_ms
    group by gpu_uuid, gpu_instance, job_run_key, hour_ms
),
held as (
    select gpu_uuid, gpu_instance, job_run_key, hour_ms, sum(cell_end_ms - cell_start_ms) as held_ms
    from cells
    group by gpu_uuid, gpu_instance, job_run_key, hour_ms
)
select * from held left join seen using (gpu_uuid, gpu_instance, job_run_key, hour_ms)"""


def chdb(folder, result, margin_ms):
    """Do it with ClickHouse, in the process."""
    import chdb as clickhouse  # noqa: PLC0415 -- an alternative's own, and large

    sql = CHDB.format(
        readings=folder / READINGS, holds=folder / HOLDS, idle=IDLE, hour=HOUR_MS,
        margin=margin_ms, reach=REACH,
    )  # fmt: skip
    with Meter() as meter:
        found = clickhouse.query(sql, "Parquet").bytes()
    result.write_bytes(found)
    write(pl.read_parquet(result), result)
    return meter.cost


ALTERNATIVES = {"ClickHouse (chdb)": chdb}

"""The telemetry stage, ours and ClickHouse's: what readings say of every held GPU-hour.

From readings and holds to active, idle and unknown milliseconds per GPU, hour and job run. A
reading covers back to the one before it, at most 2.5 times the median distance (the lower one) of
its series' readings in its hour; what no reading covers is unknown. This is the part of the ledger
that both can do; the rest is hundreds of lines of rules on intervals.

Ours runs the product's own SQL on its file. ClickHouse begins with two Parquet files of the
columns that it needs. Neither stores the outcome. It knows one source a GPU; ours would choose.
"""

import contextlib

import polars as pl
from tests.benchmarks.meter import Meter

from goodput_queries.catalog import models
from goodput_queries.database import LocalStore
from goodput_queries.ledger_build import dirty, materialise, watermarks
from goodput_queries.ledger_build.dirty_hours import DirtyHours, ranges

HOUR_MS = 3_600_000
KEY = ("gpu_uuid", "gpu_instance", "job_run_key", "hour_ms")
SUMS = ("active_ms", "idle_ms", "unknown_ms")
READINGS, HOLDS = "readings.parquet", "holds.parquet"
NAMES = ("intermediate.int_sample_intervals", "intermediate.int_gpu_activity")

EXPORTS = {
    READINGS: """select source, gpu_uuid, gpu_instance, ts, engine_active_ratio, gpu_busy_ratio,
            coalesce(is_flagged, false) as is_flagged
        from raw.gpu_samples""",
    HOLDS: """select gpu_uuid, gpu_instance, job_run_key, start_ms,
            least(coalesce(end_ms, as_of_ms), as_of_ms) as end_ms
        from intermediate.int_holds
        inner join intermediate.int_clusters using (cluster)
        where start_ms < as_of_ms""",
}

OURS = f"""with cells as (
    select
        gpu_uuid, gpu_instance, job_run_key, hour_ms,
        greatest(start_ms, hour_ms) as start_ms,
        least(end_ms, hour_ms + {HOUR_MS}) as end_ms
    from (
        select *, unnest(range(start_ms // {HOUR_MS} * {HOUR_MS}, end_ms, {HOUR_MS})) as hour_ms
        from ({EXPORTS[HOLDS]})
    )
),
held as (
    select {", ".join(KEY)}, sum(end_ms - start_ms) as held_ms
    from cells
    group by all
),
seen as (
    select
        {", ".join(KEY)}, is_active,
        sum(
            least(cells.end_ms, activity.end_ms) - greatest(cells.start_ms, activity.start_ms)
        ) as ms
    from cells
    inner join intermediate.int_gpu_activity as activity using (gpu_uuid, gpu_instance, hour_ms)
    where activity.start_ms < cells.end_ms and activity.end_ms > cells.start_ms
    group by all
)
select
    held.*,
    coalesce(sum(ms) filter (is_active), 0) as active_ms,
    coalesce(sum(ms) filter (not is_active), 0) as idle_ms
from held
left join seen using ({", ".join(KEY)})
group by all"""


def export(database, folder):
    """Write what the others begin with, not timed; return how far around an hour ours looks."""
    with contextlib.closing(LocalStore(database)) as store, store.cursor() as cursor:
        for name, select in EXPORTS.items():
            cursor.execute(f"copy ({select}) to '{folder / name}' (format parquet)")
        return watermarks.reading_margin_ms(cursor)


def ours(database, result, _):
    """Run the stages of the product that read nothing but readings, then add up by hold."""
    stored = [m for m in models.of_readings() if m.qualified_name in NAMES]
    with contextlib.closing(LocalStore(database)) as store, store.cursor() as cursor:
        with Meter() as meter:
            cursor.execute("begin")
            hours = dirty.reading_hours(cursor, None)
            for first, last in ranges(hours, len(hours)):
                materialise.set_hours(cursor, first, last)
                watermarks.note_reading_series(cursor)
            watermarks.set_reading_margin(cursor)
            all_of_them = DirtyHours(frozenset(hours))
            materialise.replace_hours(cursor, stored, all_of_them, is_compared=False)
            found = cursor.sql(OURS).pl()
        cursor.execute("rollback")
    write(found, result)
    return meter.cost


def write(found, result):
    """Write a result in one form and order, not timed."""
    sums = ("held_ms", "active_ms", "idle_ms")
    found.select(
        *(pl.col(name).cast(pl.String) for name in KEY[:3]),
        *(pl.col(name).cast(pl.Int64).fill_null(0) for name in (KEY[3], *sums)),
    ).select(
        *KEY,
        *SUMS[:2],
        (pl.col("held_ms") - pl.col("active_ms") - pl.col("idle_ms")).alias("unknown_ms"),
    ).sort(KEY).write_parquet(result)


def difference(mine, theirs):
    """Return how two results differ, in a sentence; empty where they are equal."""
    first, second = pl.read_parquet(mine), pl.read_parquet(theirs)
    if first.equals(second):
        return ""
    both = (first, second), (second, first)
    only = [one.join(other, on=first.columns, how="anti") for one, other in both]
    return (
        f"of {first.height:,} rows {only[0].height:,} are only in {mine.name}, "
        f"{only[1].height:,} only in {theirs.name}, as {only[0].head(1).to_dicts()} "
        f"and {only[1].head(1).to_dicts()}"
    )


def cells(result):
    """Return the rows of a result."""
    return int(pl.scan_parquet(result).select(pl.len()).collect().item())


# At the turn of an hour ClickHouse reaches back by the interval of the reading's own hour, where
# ours asks that of the hour before, and of hours with fewer than two distances it asks the hour
# alone: the same here, since each GPU of the fleet is read at one interval.
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

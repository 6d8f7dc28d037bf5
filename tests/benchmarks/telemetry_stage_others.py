"""The telemetry stage as users of pandas, Polars and ClickHouse would write it.

At the turn of an hour they reach back by the interval of the reading's own hour, where ours asks
that of the hour before, and of hours with fewer than two distances they ask the hour alone: the
same here, since each GPU of the fleet is read at one interval.
"""

import polars as pl
from tests.benchmarks.meter import Meter
from tests.benchmarks.telemetry_stage import HOLDS, HOUR_MS, KEY, READINGS, write

REACH = 2.5  # median distances that a reading covers (threshold sample_reach)
IDLE = 0.01  # activity at or under it is none (thresholds idle_engine_ratio, idle_busy_ratio)


def polars(folder, result, margin_ms):
    """Do it with Polars, lazily."""
    series = ["source", "gpu_uuid", "gpu_instance"]
    ts, previous, hour = pl.col("ts_ms"), pl.col("previous_ms"), pl.col("hour_ms")
    with Meter() as meter:
        engine, busy = pl.col("engine_active_ratio"), pl.col("gpu_busy_ratio")
        readings = (
            pl.scan_parquet(folder / READINGS)
            .filter(pl.coalesce(engine, busy).is_not_null())
            .filter(engine.is_not_null() | ~pl.col("is_flagged"))
            .select(
                *series,
                (pl.col("ts").dt.epoch("us") // 1_000).alias("ts_ms"),
                pl.coalesce(engine > IDLE, busy > IDLE).alias("is_active"),
            )
            .sort(*series, "ts_ms")
            .with_columns(
                ts.shift().over(series).alias("previous_ms"),
                (ts // HOUR_MS * HOUR_MS).alias("hour_ms"),
            )
            .collect()
        )
        intervals = (
            readings.lazy()
            .filter(ts - previous <= margin_ms)
            .group_by(*series, "hour_ms")
            .agg((ts - previous).quantile(0.5, "lower").alias("interval_ms"))
        )
        reach = (pl.col("interval_ms").fill_null(0) * REACH).floor().cast(pl.Int64)
        covered = (
            readings.lazy()
            .filter(previous.is_not_null())
            .join(intervals, on=[*series, "hour_ms"], how="left")
            .select(
                "gpu_uuid", "gpu_instance", "hour_ms", "is_active",
                pl.max_horizontal(previous, ts - reach).alias("from_ms"),
                ts.alias("until_ms"),
            )
        )  # fmt: skip
        before = covered.filter(pl.col("from_ms") < hour).with_columns(
            hour_ms=hour - HOUR_MS, until_ms=hour
        )
        pieces = pl.concat([covered, before]).with_columns(
            from_ms=pl.max_horizontal("from_ms", "hour_ms")
        )
        hours = pl.int_ranges(pl.col("start_ms") // HOUR_MS * HOUR_MS, "end_ms", HOUR_MS)
        cells = (
            pl.scan_parquet(folder / HOLDS)
            .with_columns(hours.alias("hour_ms"))
            .explode("hour_ms")
            .with_columns(
                start_ms=pl.max_horizontal("start_ms", "hour_ms"),
                end_ms=pl.min_horizontal("end_ms", hour + HOUR_MS),
            )
        )
        overlap = pl.min_horizontal("end_ms", "until_ms") - pl.max_horizontal("start_ms", "from_ms")
        is_active = pl.col("is_active")
        seen = (
            pieces.join(cells, on=["gpu_uuid", "gpu_instance", "hour_ms"])
            .with_columns(overlap.alias("ms"))
            .filter(pl.col("ms") > 0)
            .group_by(KEY)
            .agg(
                pl.col("ms").filter(is_active).sum().alias("active_ms"),
                pl.col("ms").filter(~is_active).sum().alias("idle_ms"),
            )
        )
        found = (
            cells.group_by(KEY)
            .agg((pl.col("end_ms") - pl.col("start_ms")).sum().alias("held_ms"))
            .join(seen, on=KEY, how="left")
            .collect()
        )
    write(found, result)
    return meter.cost


def pandas(folder, result, margin_ms):
    """Do it with pandas, on integers for texts as one would at this size."""
    import numpy as np  # noqa: PLC0415 -- an alternative's own
    import pandas as pd  # noqa: PLC0415

    with Meter() as meter:
        rows = pd.read_parquet(folder / READINGS)
        holds = pd.read_parquet(folder / HOLDS)
        engine, busy = rows["engine_active_ratio"], rows["gpu_busy_ratio"]
        is_usable = engine.notna() | (busy.notna() & ~rows["is_flagged"])
        is_active = (engine > IDLE).where(engine.notna(), busy > IDLE)
        rows = pd.DataFrame(
            {
                "source": rows["source"].astype("category"),
                "gpu": (rows["gpu_uuid"] + "\n" + rows["gpu_instance"]).astype("category"),
                "ts_ms": rows["ts"].astype("int64") // 1_000,
                "is_active": is_active.astype(bool),
            }
        )[is_usable].sort_values(["source", "gpu", "ts_ms"])
        rows["previous_ms"] = rows.groupby(["source", "gpu"], observed=True)["ts_ms"].shift()
        rows["hour_ms"] = rows["ts_ms"] // HOUR_MS * HOUR_MS
        rows = rows[rows["previous_ms"].notna()]
        rows["previous_ms"] = rows["previous_ms"].astype("int64")
        rows["distance_ms"] = rows["ts_ms"] - rows["previous_ms"]
        intervals = (
            rows[rows["distance_ms"] <= margin_ms]
            .groupby(["source", "gpu", "hour_ms"], observed=True)["distance_ms"]
            .quantile(0.5, interpolation="lower")
            .rename("interval_ms")
            .reset_index()
        )
        rows = rows.merge(intervals, on=["source", "gpu", "hour_ms"], how="left")
        reach = np.floor(rows["interval_ms"].fillna(0) * REACH).astype("int64")
        rows["from_ms"] = np.maximum(rows["previous_ms"], rows["ts_ms"] - reach)
        rows["until_ms"] = rows["ts_ms"]
        rows = rows[["gpu", "hour_ms", "is_active", "from_ms", "until_ms"]]
        before = rows[rows["from_ms"] < rows["hour_ms"]].copy()
        before["until_ms"] = before["hour_ms"]
        before["hour_ms"] -= HOUR_MS
        rows = pd.concat([rows, before], ignore_index=True)
        rows["from_ms"] = rows[["from_ms", "hour_ms"]].max(axis=1)

        gpus = pd.CategoricalDtype(rows["gpu"].cat.categories)
        runs = holds["job_run_key"].astype("category")
        first = holds["start_ms"] // HOUR_MS
        hours = (holds["end_ms"] - 1) // HOUR_MS - first + 1
        at = np.repeat(np.arange(len(holds)), hours)
        number = np.arange(len(at)) - np.repeat(hours.cumsum() - hours, hours).to_numpy()
        cells = pd.DataFrame(
            {
                "gpu_uuid": holds["gpu_uuid"].astype("category").array[at],
                "gpu_instance": holds["gpu_instance"].astype("category").array[at],
                "gpu": (holds["gpu_uuid"] + "\n" + holds["gpu_instance"]).astype(gpus).array[at],
                "run": runs.cat.codes.to_numpy()[at],
                "hour_ms": (first.to_numpy()[at] + number) * HOUR_MS,
            }
        )
        cells["start_ms"] = np.maximum(holds["start_ms"].to_numpy()[at], cells["hour_ms"])
        cells["end_ms"] = np.minimum(holds["end_ms"].to_numpy()[at], cells["hour_ms"] + HOUR_MS)
        cells["held_ms"] = cells["end_ms"] - cells["start_ms"]
        seen = rows.merge(cells[["gpu", "run", "hour_ms", "start_ms", "end_ms"]])
        seen["ms"] = np.minimum(seen["end_ms"], seen["until_ms"]) - np.maximum(
            seen["start_ms"], seen["from_ms"]
        )
        seen = seen[seen["ms"] > 0]
        seen["active_ms"] = seen["ms"].where(seen["is_active"], 0)
        seen["idle_ms"] = seen["ms"].where(~seen["is_active"], 0)
        seen = seen.groupby(["gpu", "run", "hour_ms"], observed=True)[
            ["active_ms", "idle_ms"]
        ].sum()
        keys = ["gpu_uuid", "gpu_instance", "gpu", "run", "hour_ms"]
        held = cells.groupby(keys, observed=True, dropna=False)["held_ms"].sum().reset_index()
        found = held.merge(seen.reset_index(), on=["gpu", "run", "hour_ms"], how="left")
        found["job_run_key"] = runs.cat.categories.take(found["run"])
        found[["active_ms", "idle_ms"]] = found[["active_ms", "idle_ms"]].fillna(0).astype("int64")
        found = found.drop(columns=["gpu", "run"])
    texts = {name: found[name].astype(str) for name in KEY[:3]}
    write(pl.from_pandas(found.assign(**texts)), result)
    return meter.cost


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


ALTERNATIVES = {
    "pandas": pandas,
    "Polars": polars,
    "ClickHouse (chdb)": chdb,
}

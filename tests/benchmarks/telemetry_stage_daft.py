"""The telemetry stage of a lake as users of Daft would write it, from the same files as ours.

Daft is what distributes frames over Ray; here it runs on this machine alone, as ours does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from tests.benchmarks.meter import Cost, Meter
from tests.benchmarks.telemetry_stage import HOLDS, HOUR_MS, KEY, write
from tests.benchmarks.telemetry_stage_others import IDLE, REACH

if TYPE_CHECKING:
    from pathlib import Path

SERIES = ("source", "gpu_uuid", "gpu_instance")


def daft(lake_url: str, folder: Path, result: Path, margin_ms: int) -> Cost:
    """Do it with Daft: readings from the lake, holds from the Parquet file that all begin with."""
    import daft as frames  # noqa: PLC0415 -- an alternative's own, and large
    from daft import col, functions  # noqa: PLC0415

    with Meter() as meter:
        engine, busy = col("engine_active_ratio"), col("gpu_busy_ratio")
        in_order = frames.Window().partition_by(*SERIES).order_by("ts_ms")
        readings = (
            frames.read_deltalake(f"{lake_url}/raw/gpu_samples")
            .where(engine.not_null() | (busy.not_null() & ~col("is_flagged").fill_null(False)))
            .select(
                *SERIES,
                (col("ts").cast(frames.DataType.int64()) // 1000).alias("ts_ms"),
                functions.coalesce(engine > IDLE, busy > IDLE).alias("is_active"),
            )
            .with_column("previous_ms", functions.lag(col("ts_ms"), 1).over(in_order))
            .with_column("hour_ms", col("ts_ms") // HOUR_MS * HOUR_MS)
            .where(col("previous_ms").not_null())
            .collect()
        )
        distance = col("ts_ms") - col("previous_ms")
        is_active = col("is_active")
        sorted_list = functions.list_sort(col("distances"))
        middle = (functions.list_count(col("distances")).cast(frames.DataType.int64()) - 1) // 2
        intervals = (
            readings.where(distance <= margin_ms)
            .select(*SERIES, "hour_ms", distance.alias("distance"))
            .groupby(*SERIES, "hour_ms")
            .agg(col("distance").list_agg().alias("distances"))
            .select(*SERIES, "hour_ms", sorted_list.get(middle).alias("interval_ms"))
        )
        reach = (col("interval_ms").fill_null(0) * REACH).floor().cast(frames.DataType.int64())
        from_ms = col("ts_ms") - reach
        covered = readings.join(intervals, on=[*SERIES, "hour_ms"], how="left").select(
            "gpu_uuid",
            "gpu_instance",
            "hour_ms",
            "is_active",
            functions.columns_max(from_ms, col("previous_ms")).alias("from_ms"),
            col("ts_ms").alias("until_ms"),
        )
        before = covered.where(col("from_ms") < col("hour_ms")).select(
            "gpu_uuid",
            "gpu_instance",
            (col("hour_ms") - HOUR_MS).alias("hour_ms"),
            "is_active",
            "from_ms",
            col("hour_ms").alias("until_ms"),
        )
        pieces = covered.concat(before).with_column(
            "from_ms", functions.columns_max(col("from_ms"), col("hour_ms"))
        )
        # the hours of holds are few: they are spread before, by Polars
        cells = frames.from_arrow(_cells(folder).to_arrow())
        overlap = functions.columns_min(col("end_ms"), col("until_ms")) - functions.columns_max(
            col("start_ms"), col("from_ms")
        )
        seen = (
            pieces.join(cells, on=["gpu_uuid", "gpu_instance", "hour_ms"])
            .with_column("ms", overlap)
            .where(col("ms") > 0)
            .groupby(*KEY)
            .agg(
                functions.when(is_active, col("ms")).otherwise(0).sum().alias("active_ms"),
                functions.when(~is_active, col("ms")).otherwise(0).sum().alias("idle_ms"),
            )
        )
        held = cells.groupby(*KEY).agg((col("end_ms") - col("start_ms")).sum().alias("held_ms"))
        found = pl.from_arrow(held.join(seen, on=list(KEY), how="left").to_arrow())
    write(found, result)  # type: ignore[arg-type]
    return meter.cost


def _cells(folder: Path) -> pl.DataFrame:
    hours = pl.int_ranges(pl.col("start_ms") // HOUR_MS * HOUR_MS, "end_ms", HOUR_MS)
    return (
        pl.scan_parquet(folder / HOLDS)
        .with_columns(hours.alias("hour_ms"))
        .explode("hour_ms")
        .with_columns(
            start_ms=pl.max_horizontal("start_ms", "hour_ms"),
            end_ms=pl.min_horizontal("end_ms", pl.col("hour_ms") + HOUR_MS),
        )
        .collect()
    )

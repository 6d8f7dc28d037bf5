"""When each label set was seen: the ground under owners, Xids and the inventory."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl

from goodput_ingest.gpu_metrics.keys import rows_of

if TYPE_CHECKING:
    from goodput_ingest.gpu_metrics.memory import Memory
    from goodput_ingest.gpu_metrics.samples import Points


def presence(
    points: Points, series: pl.DataFrame, label_sets: pl.DataFrame, memory: Memory
) -> pl.DataFrame:
    """Return a row for each label set and moment: labels (its row), gpu_uuid, gpu_instance, ts.

    The median time between readings of a GPU is remembered.
    """
    labels = series["labels"].cast(pl.Int64).to_numpy()[points.series]
    height = max(label_sets.height, 1)
    _, keys = rows_of(points.moment * height + labels, height * len(points.moments))
    rows = pl.Series("labels", keys % height)
    seen = label_sets.select("gpu_uuid", "gpu_instance")[rows].with_columns(
        rows, points.moments.gather(pl.Series(keys // height)).alias("ts")
    )
    between = (
        seen.select("gpu_uuid", "ts")
        .unique()
        .sort("gpu_uuid", "ts")
        .select(pl.col("ts").diff().over("gpu_uuid"))["ts"]
        .median()
    )
    if isinstance(between, timedelta):
        memory.interval = between
    return seen

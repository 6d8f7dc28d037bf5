"""Times at which each label set was seen: the input of owners, Xids and the inventory."""

from datetime import timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodput_ingest.gpu_metrics.keys import rows_of
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
    between = _between(points, label_sets["gpu_uuid"], keys).median()
    if isinstance(between, timedelta):
        memory.interval = between
    return seen


def _between(points: Points, gpu_uuid: pl.Series, keys: NDArray[np.int64]) -> pl.Series:
    """Return the times between one reading of a GPU and the next.

    keys: moment * height + label set, of those that were seen
    """
    height, moments = max(len(gpu_uuid), 1), len(points.moments)
    gpu = gpu_uuid.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    of_gpu = gpu[keys % height] * moments + keys // height
    _, readings = rows_of(of_gpu, (int(gpu.max(initial=0)) + 1) * moments)
    us = points.moments.to_physical().to_numpy()[readings % max(moments, 1)]
    is_same = np.diff(readings // max(moments, 1)) == 0
    return pl.Series(np.diff(us)[is_same]).cast(pl.Duration("us"))

"""Series of GPU exporters into rows of the raw tables."""

from datetime import timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.gpu_metrics import instances, inventory, owners, samples, scales, xids
from goodput_ingest.gpu_metrics.keys import rows_of
from goodput_ingest.gpu_metrics.memory import Memory
from goodput_ingest.gpu_metrics.plan import plan as planned
from goodput_ingest.gpu_metrics.samples import Points
from goodput_ingest.source import Reject

TEXTS = ("gpu_uuid", "gpu_instance", "metric")


def gpu_rows(
    points: pl.DataFrame,
    series: pl.DataFrame,
    label_sets: pl.DataFrame,
    *,
    source: str,
    cluster: str | None = None,
    memory: Memory | None = None,
) -> list[Parsed]:
    """Return the rows of raw tables that the points of one part of a file or one answer give.

    Tables: gpu_samples, gpu_samples_other, gpus, gpu_instances, gpu_processes, gpu_events,
    gpu_owners.

    points: series (row of `series`), ts (naive UTC, us), value; in any order
    series: metric (raw name, as the exporter prints it), labels (row of `label_sets`)
    label_sets: what `labels.normalise` returns
    memory: what earlier parts of the same origin left; it is brought up to date

    A value that cannot be a reading (a sentinel, out of range, NaN) is null: in a wide row
    `is_flagged` says so. Names that are of no GPU come back as rejects of the first table.
    """
    memory = memory if memory is not None else Memory()
    points, series, label_sets = owners.named_by_value(points, series, label_sets)
    plan = memory.once(planned, series, label_sets)
    plan = scales.decided(points, series, label_sets, plan, memory)
    usable = samples.in_units(points, plan)
    seen = presence(usable, series, label_sets, memory)
    without = [
        Reject(None, f"{source}: {name} names no GPU{why and f': {why}'}; it was left out.", name)
        for name, why in plan.without_gpu
    ]
    other = samples.narrow(usable, plan)
    of_use = {*inventory.METRICS, xids.LATCH}
    used = [m for m in plan.metrics if m in of_use or m.partition("{")[0] in xids.HEALTHS]
    facts = other.filter(pl.col("metric").is_in(used)).with_columns(pl.col(TEXTS).cast(pl.String))
    wide = samples.wide(usable, plan)
    found = [
        Parsed("gpu_samples", wide, without),
        Parsed("gpu_samples_other", other),
        Parsed("gpus", inventory.gpus(seen, label_sets, facts, wide, cluster, memory)),
        Parsed("gpu_instances", instances.instances(seen, label_sets, cluster, memory)),
        Parsed("gpu_processes", inventory.processes(facts)),
        Parsed("gpu_events", xids.events(seen, label_sets, facts, cluster, memory)),
        Parsed("gpu_owners", owners.owners(seen, label_sets, cluster, memory)),
    ]
    latest = seen.group_by("gpu_uuid", "gpu_instance").agg(pl.col("ts").max())
    for gpu_uuid, gpu_instance, ts in latest.iter_rows():
        memory.seen[gpu_uuid, gpu_instance] = ts
    return [parsed for parsed in found if not parsed.rows.is_empty() or parsed.rejects]


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

"""Owner of a GPU by the labels on its series: from the first reading with a label to the last.

A reading without the label, or a gap in the readings, ends a stretch. Readings that are read again
(polls of a server overlap) belong to the stretch of their first read.
"""

from datetime import datetime, timedelta
from typing import Any, Final

import polars as pl

from goodput_ingest.formats.parsed import INSTANT
from goodput_ingest.gpu_metrics.memory import HOLE_INTERVALS, Memory

KINDS: Final = {"pod": "pod", "hpc_job": "hpc_job"}  # kind, label
GPU: Final = ["gpu_uuid", "gpu_instance"]
KEY: Final = [*GPU, "kind", "owner", "container"]
STRETCH: Final[dict[str, Any]] = {"first_seen_at": INSTANT, "last_seen_at": INSTANT}
BY_VALUE: Final = "nvidia_gpu_jobId"  # of Jobstats, whose labels name the job since late 2025 only
REMEMBERED: Final = timedelta(hours=1)  # a stretch that is over: more than any poll goes back


def named_by_value(
    points: pl.DataFrame, series: pl.DataFrame, label_sets: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the frames of `gpu_rows`, with a label set of its own for each job that is a value."""
    is_unnamed = label_sets["hpc_job"][series["labels"]].is_null()
    unnamed = ((series["metric"] == BY_VALUE) & is_unnamed).arg_true()
    job = pl.col("value").cast(pl.Int64, strict=False)
    at = pl.col("series").is_in(unnamed.implode()) & (job > 0)  # 0: no job
    jobs = points.filter(at).select("series", job=job).unique(maintain_order=True)
    if jobs.is_empty():
        return points, series, label_sets
    numbered = jobs.with_row_index("named", series.height).cast({"named": points.schema["series"]})
    named = points.with_columns(job=job).join(numbered, on=["series", "job"], how="left")
    sets = label_sets[series["labels"][jobs["series"]]]
    labels = pl.int_range(label_sets.height, label_sets.height + jobs.height, eager=True)
    more = series[jobs["series"]].with_columns(labels.cast(series.schema["labels"]).alias("labels"))
    return (
        named.select(pl.coalesce("named", "series").alias("series"), "ts", "value"),
        pl.concat([series, more]),
        pl.concat([label_sets, sets.with_columns(hpc_job=jobs["job"].cast(pl.String))]),
    )


def owners(
    seen: pl.DataFrame, label_sets: pl.DataFrame, cluster: str | None, memory: Memory
) -> pl.DataFrame:
    """Return rows of raw.gpu_owners; the last stretch of each owner is remembered."""
    gpus = label_sets.select(GPU).unique().with_row_index("gpu")
    keys = _keys(label_sets, gpus)
    if keys.is_empty():
        stretches = pl.DataFrame(schema=dict.fromkeys(KEY, pl.String) | STRETCH)
    else:
        keyed = keys.select(KEY).unique().sort(KEY).with_row_index("key")
        keyed = keyed.join(_known_stretches(memory), on=KEY, how="left", maintain_order="left")
        readings = _readings(seen, label_sets, gpus, memory)
        numbered = keys.join(keyed.select(*KEY, "key"), on=KEY).select("labels", "gpu", "key")
        carried = _carried(seen, numbered, readings, keyed)
        found = _stretches(carried)
        stretches = pl.concat(
            [keyed.select(KEY)[found["key"]], found.select(STRETCH.keys())], how="horizontal"
        )
    _remember(stretches, seen, memory)
    of_jobs = (
        label_sets.filter(pl.col("hpc_job").is_not_null())
        .group_by(pl.lit("hpc_job").alias("kind"), pl.col("hpc_job").alias("owner"))
        .agg(pl.col("user_name", "partition").max())
    )
    return stretches.join(
        of_jobs, on=["kind", "owner"], how="left", maintain_order="left"
    ).with_columns(cluster=pl.lit(cluster, dtype=pl.String))


def _keys(label_sets: pl.DataFrame, gpus: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each owner that a label set names: labels (its row), gpu and KEY."""
    of_kind = [
        label_sets.with_row_index("labels").select(
            "labels",
            *GPU,
            pl.lit(kind).alias("kind"),
            pl.col(label).alias("owner"),
            (pl.col("container") if kind == "pod" else pl.lit(None, pl.String))
            .fill_null("")
            .alias("container"),
        )
        for kind, label in KINDS.items()
    ]
    named = pl.concat(of_kind).filter(pl.col("owner").is_not_null())
    return named.join(gpus, on=GPU, how="inner")


def _readings(
    seen: pl.DataFrame, label_sets: pl.DataFrame, gpus: pl.DataFrame, memory: Memory
) -> pl.DataFrame:
    """Return gpu and ts of every reading, ts_before, of the reading before it, and is_near.

    is_near: there is no hole between them, by the interval of the GPU itself: others of the same
    origin may be read more often
    """
    before = pl.DataFrame(
        [(*gpu, ts) for gpu, ts in memory.seen.items()],
        schema={"gpu_uuid": pl.String, "gpu_instance": pl.String, "seen_before": INSTANT},
        orient="row",
    )
    known = gpus.join(before, on=GPU, how="left", maintain_order="left")["seen_before"]
    gpu = label_sets.join(gpus, on=GPU, how="left", nulls_equal=True, maintain_order="left")["gpu"]
    readings = pl.DataFrame([gpu.gather(seen["labels"]), seen["ts"]]).unique().sort("gpu", "ts")
    is_next = pl.col("gpu") == pl.col("gpu").shift()
    distance = pl.col("ts") - pl.col("ts_before")
    own = pl.when(distance.count().over("gpu") > 1).then(distance.median().over("gpu"))
    return readings.with_columns(
        ts_before=pl.when(is_next)
        .then(pl.col("ts").shift())
        .otherwise(known.gather(readings["gpu"]))
    ).with_columns(is_near=distance <= pl.coalesce(HOLE_INTERVALS * own, memory.hole))


def _carried(
    seen: pl.DataFrame, numbered: pl.DataFrame, readings: pl.DataFrame, keyed: pl.DataFrame
) -> pl.DataFrame:
    """Return a row for each reading of a GPU that named an owner, sorted by key (row of keyed)."""
    carried = (
        seen.select("labels", "ts")
        .join(numbered.cast({"labels": seen.schema["labels"]}), on="labels")
        .select("key", "gpu", "ts")
        .unique()
        .join(readings, on=["gpu", "ts"], how="left")
        .sort("key", "ts")
    )
    of_key = keyed.select("known_from", "known_until")[carried["key"]]
    return pl.concat([carried.drop("gpu"), of_key], how="horizontal")


def _stretches(carried: pl.DataFrame) -> pl.DataFrame:
    """Return key, first_seen_at and last_seen_at of each stretch."""
    is_first = pl.col("key").ne_missing(pl.col("key").shift())
    carried_before = pl.when(is_first).then("known_until").otherwise(pl.col("ts").shift())
    follows = (carried_before == pl.col("ts_before")) & pl.col("is_near")
    is_known = is_first & pl.col("ts").is_between("known_from", "known_until")
    return (
        carried.with_columns(
            is_first=is_first,
            goes_on=follows.fill_null(value=False) | is_known.fill_null(value=False),
        )
        .with_columns(stretch=(pl.col("is_first") | ~pl.col("goes_on")).cum_sum())
        .group_by("stretch", maintain_order=True)
        .agg(
            pl.col("key").first(),
            first_seen_at=pl.when(pl.col("is_first").first() & pl.col("goes_on").first())
            .then(pl.col("known_from").first())
            .otherwise(pl.col("ts").first()),
            last_seen_at=pl.col("ts").last(),
        )
    )


def _known_stretches(memory: Memory) -> pl.DataFrame:
    return pl.DataFrame(
        [(*key, *stretch) for key, stretch in memory.owners.items()],
        schema={**dict.fromkeys(KEY, pl.String), "known_from": INSTANT, "known_until": INSTANT},
        orient="row",
    )


def _remember(stretches: pl.DataFrame, seen: pl.DataFrame, memory: Memory) -> None:
    """Keep the last stretch of each owner, while a poll may still read of it again."""
    keyed = stretches.select(*KEY, "first_seen_at", "last_seen_at")
    for uuid, instance, kind, owner, container, first, last in keyed.iter_rows():
        key = uuid, instance, kind, owner, container
        if key not in memory.owners or memory.owners[key][1] <= last:
            memory.owners[key] = first, last
    latest = seen["ts"].max()
    if isinstance(latest, datetime):
        over = [key for key, (_, last) in memory.owners.items() if last < latest - REMEMBERED]
        for key in over:
            del memory.owners[key]

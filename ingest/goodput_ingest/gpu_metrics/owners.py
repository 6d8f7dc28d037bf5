"""Whose GPU it was by the labels on its series: from the first reading with a label to the last.

A reading without the label, or a hole in the readings, ends a stretch. Readings that are read again
(polls of a server overlap) belong to the stretch that they were told in.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import polars as pl

from goodput_ingest.parsed import INSTANT

if TYPE_CHECKING:
    from goodput_ingest.gpu_metrics.memory import Memory

KINDS: Final = {"pod": "pod", "hpc_job": "hpc_job"}  # kind, label
GPU: Final = ["gpu_uuid", "gpu_instance"]
KEY: Final = [*GPU, "kind", "owner", "container"]
REMEMBERED: Final = timedelta(hours=1)  # a stretch that is over: more than any poll goes back


def owners(
    seen: pl.DataFrame, label_sets: pl.DataFrame, cluster: str | None, memory: Memory
) -> pl.DataFrame:
    """Return rows of raw.gpu_owners; the last stretch of each owner is remembered."""
    readings = (
        seen.select(*GPU, "ts")
        .unique()
        .sort(*GPU, "ts")
        .with_columns(ts_before=pl.col("ts").shift().over(GPU))
    )
    before = pl.DataFrame(
        [(*gpu, ts) for gpu, ts in memory.seen.items()],
        schema={"gpu_uuid": pl.String, "gpu_instance": pl.String, "seen_before": INSTANT},
        orient="row",
    )
    readings = readings.join(before, on=GPU, how="left").with_columns(
        ts_before=pl.coalesce("ts_before", "seen_before")
    )
    carried = _carried(seen, label_sets)
    stretches = (
        carried.join(readings, on=[*GPU, "ts"], how="left")
        .sort(*KEY, "ts")
        .with_columns(carried_before=pl.col("ts").shift().over(KEY))
        .join(_told(memory), on=KEY, how="left")
        .with_columns(is_first=pl.col("carried_before").is_null())
        .with_columns(carried_before=pl.coalesce("carried_before", "told_until"))
        .with_columns(
            goes_on=(
                (pl.col("carried_before") == pl.col("ts_before"))
                & (pl.col("ts") - pl.col("ts_before") <= memory.hole)
            ).fill_null(value=False)
            | (pl.col("is_first") & pl.col("ts").is_between("told_from", "told_until")).fill_null(
                value=False
            )
        )
        .sort(*KEY, "ts")
        .with_columns(stretch=(~pl.col("goes_on")).cast(pl.Int32).cum_sum().over(KEY))
        .group_by(*KEY, "stretch", maintain_order=True)
        .agg(
            first_seen_at=pl.when(pl.col("is_first").first() & pl.col("goes_on").first())
            .then(pl.col("told_from").first())
            .otherwise(pl.col("ts").first()),
            last_seen_at=pl.col("ts").last(),
        )
    )
    _remember(stretches, seen, memory)
    return stretches.drop("stretch").with_columns(cluster=pl.lit(cluster, dtype=pl.String))


def _carried(seen: pl.DataFrame, label_sets: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each owner that a reading of a GPU named: KEY and ts."""
    of_kind = [
        label_sets.select(
            pl.lit(kind).alias("kind"),
            pl.col(label).alias("owner"),
            (pl.col("container") if kind == "pod" else pl.lit(None, pl.String))
            .fill_null("")
            .alias("container"),
        )
        .with_row_index("labels")
        .filter(pl.col("owner").is_not_null())
        for kind, label in KINDS.items()
    ]
    named = pl.concat(of_kind).with_columns(pl.col("labels").cast(seen.schema["labels"]))
    return seen.join(named, on="labels").select(*KEY, "ts").unique()


def _told(memory: Memory) -> pl.DataFrame:
    return pl.DataFrame(
        [(*key, *stretch) for key, stretch in memory.owners.items()],
        schema={**dict.fromkeys(KEY, pl.String), "told_from": INSTANT, "told_until": INSTANT},
        orient="row",
    )


def _remember(stretches: pl.DataFrame, seen: pl.DataFrame, memory: Memory) -> None:
    """Keep the last stretch of each owner, while a poll may still read of it again."""
    told = stretches.select(*KEY, "first_seen_at", "last_seen_at")
    for uuid, instance, kind, owner, container, first, last in told.iter_rows():
        key = uuid, instance, kind, owner, container
        if key not in memory.owners or memory.owners[key][1] <= last:
            memory.owners[key] = first, last
    latest = seen["ts"].max()
    if isinstance(latest, datetime):
        over = [key for key, (_, last) in memory.owners.items() if last < latest - REMEMBERED]
        for key in over:
            del memory.owners[key]

"""How GPUs are cut into MIG instances, by the labels of their series.

The first reading with a new instance starts a new layout, reported as a whole, and ends the
previous one. A reading without instances ends nothing at once, since a GPU may also have series of
the whole: instances end when the GPU was read without them for longer than a gap.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import polars as pl

from goodput_ingest.formats import raw_tables
from goodput_ingest.formats.parsed import frame
from goodput_ingest.gpu_metrics.memory import Layout, Memory

PROFILE: Final = re.compile(r"([1-7])g\.\d+gb.*")  # other parts (AMD's partitions) have none
ROWS = raw_tables.columns("gpu_instances", "source", "slices_of", "slurm_index")


def instances(
    seen: pl.DataFrame, label_sets: pl.DataFrame, cluster: str | None, memory: Memory
) -> pl.DataFrame:
    """Return rows of raw.gpu_instances for GPUs whose layout is new; layouts are remembered."""
    part = pl.struct("gpu_instance", "mig_profile")
    is_part = pl.col("mig_profile").str.contains(f"^{PROFILE.pattern}$")
    parts = label_sets.select(part=pl.when(is_part).then(part))["part"]
    of_note = {*seen.filter(parts.is_not_null()[seen["labels"]])["gpu_uuid"], *memory.layouts}
    if not of_note:
        return frame([], ROWS)
    shown = (
        seen.select("gpu_uuid", "ts", part=parts[seen["labels"]])
        .filter(pl.col("gpu_uuid").is_in(list(of_note)))
        .group_by("gpu_uuid", "ts")
        .agg(pl.col("part").drop_nulls().unique().sort())
        .sort("gpu_uuid", "ts")
        .group_by("gpu_uuid", pl.col("part").rle_id().over("gpu_uuid").alias("run"))
        .agg(pl.col("part").first(), first=pl.col("ts").min(), last=pl.col("ts").max())
        .sort("gpu_uuid", "first")
    )
    rows: list[dict[str, object]] = []
    for gpu_uuid, _, found, first, last in shown.iter_rows():
        layout = frozenset((one["gpu_instance"], one["mig_profile"]) for one in found)
        for instance, profile, since, until in _changes(gpu_uuid, layout, first, last, memory):
            rows.append(
                {
                    "cluster": cluster,
                    "gpu_uuid": gpu_uuid,
                    "gpu_instance": instance,
                    "profile": profile,
                    "compute_slices": int(profile[0]),
                    "valid_from_at": since,
                    "valid_to_at": until,
                }
            )
    return frame(rows, ROWS)


def _changes(
    gpu_uuid: str,
    parts: frozenset[tuple[str, str]],
    first: datetime,
    last: datetime,
    memory: Memory,
) -> Iterator[tuple[str, str, datetime, datetime | None]]:
    """Yield instance, profile, start and end where the layout read from first to last is new."""
    before = memory.layouts.get(gpu_uuid)
    if before is None:
        begin = first
    elif last <= before.seen_at:
        return  # a poll reads it again
    elif parts == before.parts:
        memory.layouts[gpu_uuid] = before._replace(seen_at=last)
        return
    elif parts < before.parts and last - before.seen_at <= memory.hole:
        return
    else:
        begin = max(first, before.seen_at)
        for instance, profile in sorted(before.parts):
            yield instance, profile, before.since, begin
    if not parts:
        memory.layouts.pop(gpu_uuid, None)
        return
    memory.layouts[gpu_uuid] = Layout(parts, begin, last)
    for instance, profile in sorted(parts):
        yield instance, profile, begin, None

"""From series to rows of GPUs: the three frames that `gpu_metrics` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from goodput_ingest.gpu_metrics import Memory, gpu_rows, labels, resolve
from goodput_ingest.parsed import INSTANT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from goodput_ingest.parsed import Parsed
    from goodput_ingest.prometheus.answer import Series


def is_gpu_metric(name: str) -> bool:
    """Say whether the name is one of a GPU exporter."""
    return resolve(name) is not None


def parsed_gpu_rows(
    series: Iterable[Series], *, source: str, cluster: str | None, memory: Memory
) -> list[Parsed]:
    """Return what the series say of GPUs, by raw table; series of something else are left out.

    memory: what earlier parts of the same origin left, see `gpu_rows`.
    """
    wanted = [one for one in series if len(one.times_ms) and is_gpu_metric(one.name)]
    if not wanted:
        return []
    rows_of_sets, label_sets = _label_sets(wanted)
    counts = [len(one.times_ms) for one in wanted]
    points = pl.DataFrame(
        {
            "series": np.repeat(np.arange(len(wanted), dtype=np.uint32), counts),
            "ts": np.concatenate([one.times_ms for one in wanted]),
            "value": np.concatenate([one.values for one in wanted]),
        }
    ).with_columns((pl.col("ts") * 1000).cast(INSTANT))
    named = pl.DataFrame({"metric": [one.name for one in wanted], "labels": rows_of_sets})
    return gpu_rows(
        points, named, labels.normalise(label_sets), source=source, cluster=cluster, memory=memory
    )


def normalised(series: Sequence[Series]) -> list[dict[str, Any]]:
    """Return for each series which GPU, node and pod it speaks of (`labels.SCHEMA`)."""
    if not series:
        return []
    rows, label_sets = _label_sets(series)
    by_set = labels.normalise(label_sets).to_dicts()
    return [by_set[row] for row in rows]


def _label_sets(series: Sequence[Series]) -> tuple[list[int], pl.DataFrame]:
    """Return for each series the row of its labels, and these rows: metrics share them."""
    sets: dict[tuple[tuple[str, str], ...], int] = {}
    rows: list[int] = []
    for one in series:
        kept = tuple(item for item in one.labels.items() if item[0].lower() in labels.NAMES)
        rows.append(sets.setdefault(kept, len(sets)))
    # with no label at all the frame still has a row a set
    names = sorted({name for kept in sets for name, _ in kept} | {labels.INSTANCE})
    by_set = [dict(kept) for kept in sets]
    return rows, pl.DataFrame(
        {name: [one.get(name) for one in by_set] for name in names},
        schema=dict.fromkeys(names, pl.String),
    )

"""From series to rows of GPUs: the three frames that `gpu_metrics` takes."""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from goodput_ingest.formats.parsed import INSTANT, Parsed
from goodput_ingest.gpu_metrics import Memory, gpu_rows, is_gpu_metric, labels
from goodput_ingest.prometheus_api.answer import Series

POINTS_PER_PART = 400_000  # fewer cost calls, more cost room


def parsed_gpu_rows(
    series: Iterable[Series], *, source: str, cluster: str | None, memory: Memory
) -> list[Parsed]:
    """Return the rows of GPU series by raw table; skips other series.

    memory: what earlier parts of the same origin left, see `gpu_rows`.

    Some targets at a time: each is scraped at moments of its own, so that a table of all GPUs by
    all moments would be nearly empty.
    """
    found: dict[str, list[Parsed]] = {}
    for part in _parts(one for one in series if len(one.times_ms) and is_gpu_metric(one.name)):
        for parsed in _gpu_rows(part, source=source, cluster=cluster, memory=memory):
            found.setdefault(parsed.table, []).append(parsed)
    return [_whole(table, parts) for table, parts in found.items()]


def _parts(series: Iterable[Series]) -> Iterator[list[Series]]:
    """Yield series by targets, all of a target together, some hundred thousand points at a time."""
    by_target: dict[str, list[Series]] = {}
    for one in series:
        by_target.setdefault(one.labels.get(labels.INSTANCE, ""), []).append(one)
    part: list[Series] = []
    points = 0
    for of_target in by_target.values():
        part += of_target
        points += sum(len(one.times_ms) for one in of_target)
        if points >= POINTS_PER_PART:
            yield part
            part, points = [], 0
    if part:
        yield part


def _gpu_rows(
    series: Sequence[Series], *, source: str, cluster: str | None, memory: Memory
) -> list[Parsed]:
    points, named, label_sets = frames_of(series, labels.NAMES)
    return gpu_rows(
        points, named, labels.normalise(label_sets), source=source, cluster=cluster, memory=memory
    )


def _whole(table: str, parts: Sequence[Parsed]) -> Parsed:
    """Return the rows of all parts; names are texts, since each part has a list of its own."""
    if len(parts) == 1:
        return parts[0]
    frames = [part.rows.with_columns(cs.enum().cast(pl.String)) for part in parts]
    rejects = dict.fromkeys(reject for part in parts for reject in part.rejects)
    return Parsed(table, pl.concat(frames, how="diagonal"), list(rejects))


def frames_of(
    series: Sequence[Series], names: Container[str]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return points, series and label sets, as `gpu_rows` and `host_rows` take them.

    names: of the labels to keep, in lower case
    """
    rows_of_sets, label_sets = _label_sets(series, names)
    points = pl.DataFrame(
        {
            "series": np.repeat(
                np.arange(len(series), dtype=np.uint32), [len(one.times_ms) for one in series]
            ),
            "ts": np.concatenate([one.times_ms for one in series]),
            "value": np.concatenate([one.values for one in series]),
        }
    ).with_columns((pl.col("ts") * 1000).cast(INSTANT))
    named = pl.DataFrame({"metric": [one.name for one in series], "labels": rows_of_sets})
    return points, named, label_sets


def normalised(series: Sequence[Series]) -> list[dict[str, Any]]:
    """Return GPU, node and pod of each series (`labels.SCHEMA`)."""
    if not series:
        return []
    rows, label_sets = _label_sets(series, labels.NAMES)
    by_set = labels.normalise(label_sets).to_dicts()
    return [by_set[row] for row in rows]


def _label_sets(series: Sequence[Series], names: Container[str]) -> tuple[list[int], pl.DataFrame]:
    """Return for each series the row of its labels, and these rows: metrics share them."""
    sets: dict[tuple[tuple[str, str], ...], int] = {}
    rows: list[int] = []
    for one in series:
        kept = tuple(item for item in one.labels.items() if item[0].lower() in names)
        rows.append(sets.setdefault(kept, len(sets)))
    # with no label at all the frame still has a row a set
    present = sorted({name for kept in sets for name, _ in kept} | {labels.INSTANCE})
    by_set = [dict(kept) for kept in sets]
    return rows, pl.DataFrame(
        {name: [one.get(name) for one in by_set] for name in present},
        schema=dict.fromkeys(present, pl.String),
    )

"""Batches of a file of scrapes, and what rows of all exporters get: a time and their rejects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from goodput_ingest.formats.parsed import INSTANT, Parsed
from goodput_ingest.formats.prometheus_text import exposition
from goodput_ingest.formats.prometheus_text.blocks import blocks
from goodput_ingest.formats.prometheus_text.series import KnownSeries
from goodput_ingest.scrapes import recorded
from goodput_ingest.scrapes.instances import with_instances
from goodput_ingest.source import Batch, ReadOptions, Reject

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path


def batches(
    path: Path,
    options: ReadOptions,
    *,
    source: str,
    names: bytes,
    labels: Container[str],
    rows: Callable[[exposition.Exposition, datetime | None], list[Parsed]],
) -> Iterator[Batch]:
    """Yield the batches of a file, block by block; each series has the label `instance`.

    names: a pattern of the names of the metrics that are read; labels: those that are kept;
    rows: the rows of raw tables of a block, whose lines without a time are of this one
    """
    known, first_line = KnownSeries(labels), 1
    meaning = (options, recorded.moment_in(path.name))
    for block in blocks(path):
        if known.is_full:
            known = KnownSeries(labels)
        found = exposition.parse(with_instances(block.data, names), known, first_line=first_line)
        first_line += found.lines
        if block.damage:
            found.rejects.append(Reject(first_line, block.damage))
        for parsed in rows(found, recorded.taken_at(path, options, found)):
            yield parsed.batch(source=source, origin=str(path), digest=found.digest(*meaning))


def with_time(points: pl.DataFrame, taken_at: datetime | None) -> pl.DataFrame:
    """Return the points, those without a time of their own at this one."""
    if taken_at is None or not points["ts"].null_count():
        return points
    return points.with_columns(points["ts"].fill_null(taken_at))


def with_rejects(parsed: list[Parsed], rejects: Sequence[Reject], table: str) -> list[Parsed]:
    """Return the tables with these rejects added to those of one table."""
    if not rejects:
        return parsed
    empty = Parsed(table, pl.DataFrame(schema={"ts": INSTANT}))
    chosen = next((p for p in parsed if p.table == table), empty)
    others = [p for p in parsed if p.table != table]
    return [replace(chosen, rejects=[*rejects, *chosen.rejects]), *others]

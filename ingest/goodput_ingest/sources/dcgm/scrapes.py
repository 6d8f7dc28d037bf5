"""Scrapes of GPU exporters in text: DCGM exporter, the nvidia-smi exporter, AMD's.

A file holds one scrape (`curl gpu-a01:9400/metrics`) or many. When a scrape was taken is, in this
order: the time that its lines carry; the line `# scraped_at` before it, which our own scraper
writes; what the person who reads it in says (--observed-at); a moment in the file's name, as
`gpu-a01_20261120T120000Z.prom`. The time the file was changed is no evidence.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final

import polars as pl

from goodput_ingest.formats import files
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.prefetch import prefetch
from goodput_ingest.formats.prometheus_text import exposition
from goodput_ingest.formats.prometheus_text.blocks import blocks
from goodput_ingest.formats.prometheus_text.series import MARK, KnownSeries
from goodput_ingest.formats.row_groups import Held
from goodput_ingest.gpu_metrics import Memory, gpu_rows, labels, resolve
from goodput_ingest.source import Batch, ReadOptions, Reject
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SAMPLES: Final = "gpu_samples"
GO_ON: Final = {"gpus", "gpu_instances", "gpu_owners", "gpu_events"}  # few rows, once a file
PART_LINES: Final = 400_000  # what becomes of series is decided once for so many lines
NO_ROWS: Final = pl.DataFrame(schema={"gpu_uuid": pl.String})
NAMED_MOMENT: Final = re.compile(r"(?<!\d)(\d{8}T\d{6}Z)(?!\w)")
SAMPLE: Final = re.compile(
    r"\s*([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\}|\s)\s*"
    r"[-+]?(?:[0-9.]+(?:[eE][-+]?[0-9]+)?|NaN|Inf)(?:\s.*)?"
)


class Dcgm:
    """A file of scrapes of GPU exporters."""

    name: ClassVar[str] = "dcgm"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file, the cluster, and where the file does not say them the time and node."""
        self.path = path
        self.options = options

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether the lines are samples, and metrics of GPUs among them."""
        return is_of_gpus(head)

    def extract(self) -> Iterator[Batch]:
        """Yield what the scrapes say, block by block.

        Raises IngestError where the file is of no GPU exporter, or where nothing says when a
        scrape was taken.
        """
        head = files.head(self.path)
        if head.strip() and not is_of_gpus(head):
            raise IngestError(
                f"{self.path}: these are no metrics of a GPU exporter; expected lines as "
                'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-..."} 100.'
            )
        return self._batches()

    def _batches(self) -> Iterator[Batch]:
        memory = Memory()
        held: dict[str, Held] = {}
        digest = ""
        for found in prefetch(self._read()):
            meaning = (digest, self.options, _moment_in(self.path.name))
            digest = found.digest(*meaning)
            rows = rows_of(
                found,
                source=self.name,
                taken_at=self._taken_at(found),
                memory=memory,
                cluster=self.options.cluster,
                node=self.options.node,
            )
            for parsed in with_rejects(rows, found.rejects):
                held.setdefault(parsed.table, Held(parsed.table)).add(parsed)
            for table in held.keys() - GO_ON:
                if whole := held[table].whole_groups():
                    yield self._batch(whole, digest)
        for rows_left in held.values():
            yield self._batch(rows_left.rest(), f"{digest}-rest")

    def _read(self) -> Iterator[exposition.Exposition]:
        """Yield what the lines of some blocks say; the next block is read meanwhile."""
        known, parts = KnownSeries(labels.NAMES), list[exposition.Exposition]()
        first_line = 1
        for block in prefetch(blocks(self.path)):
            found = exposition.parse(block.data, known, first_line=first_line)
            first_line += found.lines
            if block.damage:
                found.rejects.append(Reject(first_line, block.damage))
            del block  # its memory is used for another one
            parts.append(found)
            if known.is_full or sum(part.lines for part in parts) >= PART_LINES:
                yield exposition.joined(parts)
                parts = []
                known = KnownSeries(labels.NAMES) if known.is_full else known
        if parts:
            yield exposition.joined(parts)

    def _batch(self, parsed: Parsed, digest: str) -> Batch:
        """Return what blocks say for one table as a batch.

        digest: of these blocks and all before them, which decide what goes on in these
        """
        return parsed.batch(source=self.name, origin=str(self.path), digest=digest)

    def _taken_at(self, found: exposition.Exposition) -> datetime | None:
        taken_at = self.options.observed_at or _moment_in(self.path.name)
        if taken_at is None and found.points["ts"].null_count():
            raise IngestError(
                f"{self.path}: nothing says when a scrape was taken. Say it with --observed-at, or "
                f"write a line `{MARK}2026-11-20T12:00:00Z` before each scrape."
            )
        return taken_at


def rows_of(
    found: exposition.Exposition,
    *,
    source: str,
    taken_at: datetime | None,
    memory: Memory,
    cluster: str | None = None,
    node: str | None = None,
) -> list[Parsed]:
    """Return the rows of raw tables that scrapes give; see `gpu_rows`.

    taken_at: when lines are of that carry no time of their own; node: whose GPUs they are of where
    no label says.
    """
    points = found.points
    if points["ts"].null_count() and taken_at is not None:
        points = points.with_columns(pl.col("ts").fill_null(taken_at))
    label_sets = memory.once(labels.normalise, found.label_sets, node=node)
    return gpu_rows(points, found.series, label_sets, source=source, cluster=cluster, memory=memory)


def with_rejects(parsed: list[Parsed], rejects: Sequence[Reject]) -> list[Parsed]:
    """Return the tables with these rejects added to those of raw.gpu_samples."""
    if not rejects:
        return parsed
    samples = next((p for p in parsed if p.table == SAMPLES), Parsed(SAMPLES, NO_ROWS))
    others = [p for p in parsed if p.table != SAMPLES]
    return [replace(samples, rejects=[*rejects, *samples.rejects]), *others]


def is_of_gpus(head: bytes) -> bool:
    """Say whether at least half of the first lines are samples, some of a GPU exporter."""
    lines = [line for line in head.decode("utf-8", "replace").splitlines() if line.strip()]
    samples = [line for line in lines if not line.lstrip().startswith("#")]
    found = [match[1] for line in samples if (match := SAMPLE.fullmatch(line))]
    return 2 * len(found) >= len(samples) and any(map(resolve, found))


def _moment_in(name: str) -> datetime | None:
    """Return the moment in a file's name, naive UTC."""
    if (match := NAMED_MOMENT.search(name)) is None:
        return None
    try:
        return datetime.strptime(match[1], "%Y%m%dT%H%M%SZ")  # noqa: DTZ007 -- it says Z
    except ValueError:
        return None

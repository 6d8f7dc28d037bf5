"""Scrapes of GPU exporters in text: those of gpu_metrics/exporters.csv."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

import polars as pl

from goodput_ingest.formats import files
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.prometheus_text import exposition
from goodput_ingest.formats.prometheus_text.blocks import blocks
from goodput_ingest.formats.prometheus_text.series import KnownSeries
from goodput_ingest.formats.row_groups import Held
from goodput_ingest.gpu_metrics import Memory, gpu_rows, is_exporters, labels
from goodput_ingest.prefetch import prefetch
from goodput_ingest.scrapes import recorded
from goodput_ingest.scrapes.pages import PageFormat
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_queries.errors import IngestError

SAMPLES: Final = "gpu_samples"
GO_ON: Final = {"gpus", "gpu_instances", "gpu_owners", "gpu_events"}  # few rows, once a file
PART_LINES: Final = 400_000  # what becomes of series is decided once for so many lines
NO_ROWS: Final = pl.DataFrame(schema={"gpu_uuid": pl.String})


def _rows(
    points: pl.DataFrame,
    series: pl.DataFrame,
    label_sets: pl.DataFrame,
    *,
    source: str,
    memory: Memory,
    cluster: str | None = None,
    node: str | None = None,
) -> list[Parsed]:
    """Return `gpu_rows`; node: whose GPUs they are of where no label says."""
    sets = memory.once(labels.normalise, label_sets, node=node)
    return gpu_rows(points, series, sets, source=source, cluster=cluster, memory=memory)


PAGES: Final = PageFormat(
    metrics_of="GPUs",
    example='DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-..."} 100.',
    names=b"",
    labels=labels.NAMES,
    is_metric=is_exporters,
    table=SAMPLES,
    rows=_rows,
)


class Dcgm(RecordedFile):
    """A file of scrapes of GPU exporters."""

    name: ClassVar[str] = "dcgm"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether the lines are samples, and metrics of GPUs among them."""
        return PAGES.recognises(head)

    def extract(self) -> Iterator[Batch]:
        """Yield what the scrapes say, block by block.

        Raises IngestError where the file is of no GPU exporter, or where nothing says when a
        scrape was taken.
        """
        head = files.head(self.path)
        if head.strip() and not PAGES.recognises(head):
            raise IngestError(
                f"{self.path}: these are not metrics of a GPU exporter; expected lines as "
                f"{PAGES.example}"
            )
        return self._batches()

    def _batches(self) -> Iterator[Batch]:
        memory = Memory()
        held: dict[str, Held] = {}
        digest = ""
        for found in prefetch(self._read()):
            meaning = (digest, self.options, recorded.moment_in(self.path.name))
            digest = found.digest(*meaning)
            rows = PAGES.rows_of(
                found,
                [],
                source=self.name,
                taken_at=recorded.taken_at(self.path, self.options, found),
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
        known, parts = KnownSeries(PAGES.labels), list[exposition.Exposition]()
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
                known = KnownSeries(PAGES.labels) if known.is_full else known
        if parts:
            yield exposition.joined(parts)

    def _batch(self, parsed: Parsed, digest: str) -> Batch:
        """Return what blocks say for one table as a batch.

        digest: of these blocks and all before them, which decide what goes on in these
        """
        return parsed.batch(source=self.name, origin=str(self.path), digest=digest)


def with_rejects(parsed: list[Parsed], rejects: Sequence[Reject]) -> list[Parsed]:
    """Return the tables with these rejects added to those of raw.gpu_samples."""
    if not rejects:
        return parsed
    samples = next((p for p in parsed if p.table == SAMPLES), Parsed(SAMPLES, NO_ROWS))
    others = [p for p in parsed if p.table != SAMPLES]
    return [replace(samples, rejects=[*rejects, *samples.rejects]), *others]

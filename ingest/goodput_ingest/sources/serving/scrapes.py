"""Scrapes of serving engines in text: one (`curl gpu-a01:8000/metrics`) or many in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from goodput_ingest.formats import files
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.prometheus_text import exposition
from goodput_ingest.formats.prometheus_text.blocks import blocks
from goodput_ingest.formats.prometheus_text.series import KnownSeries
from goodput_ingest.scrapes import recorded
from goodput_ingest.scrapes.instances import with_instances
from goodput_ingest.serving_metrics import ALL_LABELS, Identity, is_serving_metric, serving_rows
from goodput_ingest.source import Batch, ReadOptions, Reject
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

NAMES: Final = rb"(?:vllm|sglang|trtllm|nv|tgi|dynamo|inference|llm_d_epp|agent)[:_][\w:]+"


class ServingMetrics:
    """A file of scrapes of serving engines."""

    name: ClassVar[str] = "serving-metrics"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file, the cluster, and where the file does not say them the time and node."""
        self.path = path
        self.options = options

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether the lines are samples, and metrics of a serving engine among them."""
        return is_of_engines(head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.serving_samples` and `raw.serving_histograms`, block by block.

        Raises IngestError where the file is of no engine that is read, or where nothing says when a
        scrape was taken.
        """
        head = files.head(self.path)
        if head.strip() and not is_of_engines(head):
            raise IngestError(
                f"{self.path}: these are no metrics of a serving engine; expected lines as "
                'vllm:num_requests_running{engine="0",model_name="m"} 3.0.'
            )
        return self._batches()

    def _batches(self) -> Iterator[Batch]:
        known, first_line = KnownSeries(ALL_LABELS), 1
        meaning = (self.options, recorded.moment_in(self.path.name))
        for block in blocks(self.path):
            if known.is_full:
                known = KnownSeries(ALL_LABELS)
            text = with_instances(block.data, NAMES)
            found = exposition.parse(text, known, first_line=first_line)
            first_line += found.lines
            if block.damage:
                found.rejects.append(Reject(first_line, block.damage))
            rows = rows_of(
                found,
                found.rejects,
                taken_at=recorded.taken_at(self.path, self.options, found),
                cluster=self.options.cluster,
                given=Identity(node=self.options.node),
            )
            for parsed in rows:
                yield parsed.batch(
                    source=self.name, origin=str(self.path), digest=found.digest(*meaning)
                )


def rows_of(
    found: exposition.Exposition,
    rejects: Sequence[Reject],
    *,
    taken_at: datetime | None,
    cluster: str | None,
    given: Identity,
) -> list[Parsed]:
    """Return the rows of raw tables that scrapes give, and these rejects; see `serving_rows`."""
    points = found.points
    if points["ts"].null_count() and taken_at is not None:
        points = points.with_columns(points["ts"].fill_null(taken_at))
    rows = serving_rows(points, found.series, found.label_sets, cluster=cluster, given=given)
    if not rejects:
        return rows
    first, *others = rows or [Parsed("serving_samples", points.clear().select("ts"))]
    return [Parsed(first.table, first.rows, [*rejects, *first.rejects]), *others]


def is_of_engines(head: bytes) -> bool:
    """Say whether at least half of the first lines are samples, some of a serving engine."""
    return recorded.has_metric(head, is_serving_metric)

"""Scrapes of serving engines in text: one (`curl gpu-a01:8000/metrics`) or many in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from goodput_ingest.formats import files
from goodput_ingest.scrapes import recorded
from goodput_ingest.scrapes.batches import batches, with_rejects, with_time
from goodput_ingest.serving_metrics import ALL_LABELS, Identity, is_serving_metric, serving_rows
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from goodput_ingest.formats.parsed import Parsed
    from goodput_ingest.formats.prometheus_text.exposition import Exposition
    from goodput_ingest.source import Batch, ReadOptions, Reject

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
        return batches(
            self.path,
            self.options,
            source=self.name,
            names=NAMES,
            labels=ALL_LABELS,
            rows=self._rows,
        )

    def _rows(self, found: Exposition, taken_at: datetime | None) -> list[Parsed]:
        given, cluster = Identity(node=self.options.node), self.options.cluster
        return rows_of(found, found.rejects, taken_at=taken_at, cluster=cluster, given=given)


def rows_of(
    found: Exposition,
    rejects: Sequence[Reject],
    *,
    taken_at: datetime | None,
    cluster: str | None,
    given: Identity,
) -> list[Parsed]:
    """Return the rows of raw tables that scrapes give, and these rejects; see `serving_rows`."""
    points = with_time(found.points, taken_at)
    rows = serving_rows(points, found.series, found.label_sets, cluster=cluster, given=given)
    return with_rejects(rows, rejects, "serving_samples")


def is_of_engines(head: bytes) -> bool:
    """Say whether at least half of the first lines are samples, some of a serving engine."""
    return recorded.has_metric(head, is_serving_metric)

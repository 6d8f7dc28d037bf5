"""Scrapes of node_exporter in text: one (`curl gpu-a01:9100/metrics`) or many in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from goodput_ingest.formats import files
from goodput_ingest.host_metrics import LABELS, host_rows, is_host_metric
from goodput_ingest.scrapes import recorded
from goodput_ingest.scrapes.batches import batches, with_rejects, with_time
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from goodput_ingest.formats.parsed import Parsed
    from goodput_ingest.formats.prometheus_text.exposition import Exposition
    from goodput_ingest.source import Batch, ReadOptions, Reject

BUILD_INFO: Final = "node_exporter_build_info"
NAMES: Final = rb"node_\w+"


class NodeExporter:
    """A file of scrapes of node_exporter."""

    name: ClassVar[str] = "node-exporter"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file, the cluster, and where the file does not say them the time and node."""
        self.path = path
        self.options = options

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether the lines are samples, and metrics of a host among them."""
        return is_of_hosts(head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.node_samples` and `raw.link_samples`, block by block.

        Raises IngestError where the file is not of node_exporter, or where nothing says when a
        scrape was taken.
        """
        head = files.head(self.path)
        if head.strip() and not is_of_hosts(head):
            raise IngestError(
                f"{self.path}: these are no metrics of node_exporter; expected lines as "
                'node_cpu_seconds_total{cpu="0",mode="idle"} 259.61.'
            )
        return batches(
            self.path,
            self.options,
            source=self.name,
            names=NAMES,
            labels=LABELS,
            rows=self._rows,
        )

    def _rows(self, found: Exposition, taken_at: datetime | None) -> list[Parsed]:
        options = self.options
        return rows_of(
            found, found.rejects, taken_at=taken_at, cluster=options.cluster, node=options.node
        )


def rows_of(
    found: Exposition,
    rejects: Sequence[Reject],
    *,
    taken_at: datetime | None,
    cluster: str | None,
    node: str | None = None,
) -> list[Parsed]:
    """Return the rows of raw tables that scrapes give, and these rejects; see `host_rows`."""
    points = with_time(found.points, taken_at)
    rows = host_rows(points, found.series, found.label_sets, cluster=cluster, node=node)
    return with_rejects(rows, rejects, "node_samples")


def is_of_hosts(head: bytes) -> bool:
    """Say whether at least half of the first lines are samples, some of node_exporter's."""
    return recorded.has_metric(head, lambda name: name == BUILD_INFO or is_host_metric(name))

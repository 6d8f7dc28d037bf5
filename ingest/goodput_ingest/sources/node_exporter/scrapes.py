"""Scrapes of node_exporter in text: one (`curl gpu-a01:9100/metrics`) or many in a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from goodput_ingest.host_metrics import LABELS, host_rows, is_host_metric
from goodput_ingest.scrapes.pages import PageFormat
from goodput_ingest.source import Batch, RecordedFile

BUILD_INFO: Final = "node_exporter_build_info"
PAGES: Final = PageFormat(
    metrics_of="node_exporter",
    example='node_cpu_seconds_total{cpu="0",mode="idle"} 259.61',
    names=rb"node_\w+",
    labels=LABELS,
    is_metric=lambda name: name == BUILD_INFO or is_host_metric(name),
    table="node_samples",
    rows=host_rows,
)


class NodeExporter(RecordedFile):
    """A file of scrapes of node_exporter."""

    name: ClassVar[str] = "node-exporter"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether the lines are samples, and metrics of a host among them."""
        return PAGES.recognises(head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.node_samples` and `raw.link_samples`; see `PageFormat.read`."""
        return PAGES.read(self.path, self.options, self.name, node=self.options.node)

"""Scrapes of serving engines in text: one (`curl gpu-a01:8000/metrics`) or many in a file."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from goodput_ingest.scrapes.pages import PageFormat
from goodput_ingest.source import Batch, RecordedFile
from goodput_serving.metrics import ALL_LABELS, Identity, is_serving_metric, serving_rows

# in the name of a file before the moment of its scrape: vllm-8001_20261120T120000Z.prom
PORT: Final = re.compile(r"[-_.:](\d{4,5})[-_]\d{8}T\d{6}Z(?!\w)")
PAGES: Final = PageFormat(
    metrics_of="a serving engine",
    example='vllm:num_requests_running{engine="0",model_name="m"} 3.0',
    names=rb"(?:ray_vllm|vllm|sglang|trtllm|nv|tgi|dynamo|inference|llm_d_epp|agent)[:_][\w:]+",
    labels=ALL_LABELS,
    is_metric=is_serving_metric,
    table="serving_samples",
    rows=serving_rows,
)


class ServingMetrics(RecordedFile):
    """A file of scrapes of serving engines."""

    name: ClassVar[str] = "serving-metrics"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether the lines are samples, and metrics of a serving engine among them."""
        return PAGES.recognises(head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.serving_samples` and `raw.serving_histograms`; see `PageFormat.read`."""
        named = PORT.search(self.path.name)
        given = Identity(node=self.options.node, port=named[1] if named else None)
        return PAGES.read(self.path, self.options, self.name, given.port, given=given)

"""Serving engines, live: see `Targets`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.prometheus_text.exposition import Exposition
from goodput_ingest.scrapes.pages import PageFormat
from goodput_ingest.scrapes.targets import Targets
from goodput_ingest.source import Reject
from goodput_serving.metrics import Identity, is_serving_metric
from goodput_serving.metrics.catalogue import meanings
from goodput_serving.sources.scrapes import PAGES, ServingMetrics

NEEDED = {  # what pages show nothing without, and what for
    "generation_tokens": "tokens per GPU-hour",
    "requests_running": "idle and busy time",
    "ttft_s": "time to first token",
}


@dataclass(frozen=True, kw_only=True)
class ServingLive(Targets):
    """Engines and gateways that are scraped directly.

    node, namespace, pod, gpus, role: of these engines, where their series do not say it; GPUs by
    UUID or by number on the node. Engines that differ in them are in `[[collect]]` tables of their
    own.
    """

    name: ClassVar[str] = ServingMetrics.name
    pages: ClassVar[PageFormat] = PAGES

    interval_s: float = 60.0
    node: str | None = None
    namespace: str | None = None
    pod: str | None = None
    gpus: tuple[str, ...] = ()
    role: Literal["prefill", "decode", "frontend", "both"] | None = None

    def _rows(self, read: Exposition, rejects: Sequence[Reject], now: datetime) -> list[Parsed]:
        given = Identity(self.node, self.namespace, self.pod, self.role, self.gpus)
        return PAGES.rows_of(read, rejects, taken_at=now, cluster=self.cluster, given=given)

    def _summary(self, read: Exposition) -> str:
        used = {name for name in read.series["metric"] if is_serving_metric(name)}
        products = sorted({meaning.product for name in used for meaning in meanings(name)})
        return f"{len(used)} metrics of {', '.join(products)}"

    def _missing(self, names: set[str]) -> list[str]:
        read = {meaning.metric for name in names for meaning in meanings(name)}
        return [
            f"no {metric}: {of} stays unknown"
            for metric, of in NEEDED.items()
            if metric not in read
        ]

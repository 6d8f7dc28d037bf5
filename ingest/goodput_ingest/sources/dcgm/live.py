"""GPU exporters, live: see `Targets`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.prometheus_text.exposition import Exposition
from goodput_ingest.gpu_metrics import Memory, labels, missing_counters
from goodput_ingest.scrapes.pages import PageFormat
from goodput_ingest.scrapes.targets import Targets
from goodput_ingest.source import Reject
from goodput_ingest.sources.dcgm.scrapes import PAGES, Dcgm, with_rejects


@dataclass(frozen=True, kw_only=True)
class DcgmLive(Targets):
    """GPU exporters that are scraped directly."""

    name: ClassVar[str] = Dcgm.name
    pages: ClassVar[PageFormat] = PAGES

    _memory: Memory = field(default_factory=Memory, init=False, repr=False, compare=False)

    def _rows(self, read: Exposition, rejects: Sequence[Reject], now: datetime) -> list[Parsed]:
        parsed = PAGES.rows_of(
            read,
            [],
            taken_at=now,
            cluster=self.cluster,
            source=self.name,
            memory=self._memory,
        )
        self._memory.made.clear()  # the next poll brings frames of its own
        return with_rejects(parsed, rejects)

    def _summary(self, read: Exposition) -> str:
        gpus = labels.normalise(read.label_sets)["gpu_uuid"].drop_nulls().n_unique()
        return f"{gpus} GPUs, {read.series['metric'].n_unique()} metrics"

    def _missing(self, names: set[str]) -> list[str]:
        return [
            f"counter off that could be used; add to the exporter's counters file: {line}"
            for line in missing_counters(names)
        ]

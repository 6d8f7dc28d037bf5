"""node_exporter, live: see `Targets`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.prometheus_text.exposition import Exposition
from goodput_ingest.host_metrics import is_host_metric
from goodput_ingest.scrapes.pages import PageFormat
from goodput_ingest.scrapes.targets import Targets
from goodput_ingest.source import Reject
from goodput_ingest.sources.node_exporter.scrapes import PAGES, NodeExporter

COLLECTORS = {  # flag of the collector: one of its metrics that every host has
    "cpu": "node_cpu_seconds_total",
    "diskstats": "node_disk_io_time_seconds_total",
    "meminfo": "node_memory_MemAvailable_bytes",
    "netclass": "node_network_up",
    "netdev": "node_network_receive_bytes_total",
    "netstat": "node_netstat_Tcp_RetransSegs",
    "uname": "node_uname_info",
}


@dataclass(frozen=True, kw_only=True)
class NodeExporterLive(Targets):
    """Hosts whose node_exporter is scraped directly."""

    name: ClassVar[str] = NodeExporter.name
    pages: ClassVar[PageFormat] = PAGES

    interval_s: float = 60.0

    def _rows(self, read: Exposition, rejects: Sequence[Reject], now: datetime) -> list[Parsed]:
        return PAGES.rows_of(read, rejects, taken_at=now, cluster=self.cluster)

    def _summary(self, read: Exposition) -> str:
        used = {name for name in read.series["metric"] if is_host_metric(name)}
        return f"{len(used)} metrics of the host"

    def _missing(self, names: set[str]) -> list[str]:
        return [
            f"the collector {flag} is off: no {metric}"
            for flag, metric in COLLECTORS.items()
            if metric not in names
        ]

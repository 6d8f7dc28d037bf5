"""node_exporter, live: see `Targets`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from goodput_ingest.host_metrics import LABELS, is_host_metric
from goodput_ingest.scrapes.instances import with_instances
from goodput_ingest.scrapes.targets import Targets
from goodput_ingest.sources.node_exporter.scrapes import NAMES, NodeExporter, is_of_hosts, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from goodput_ingest.formats.parsed import Parsed
    from goodput_ingest.formats.prometheus_text.exposition import Exposition
    from goodput_ingest.source import Reject

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
    metrics_of: ClassVar[str] = "node_exporter"
    kept_labels: ClassVar[frozenset[str]] = LABELS

    interval_s: float = 60.0

    def _is_wanted(self, head: bytes) -> bool:
        return is_of_hosts(head)

    def _with_identity(self, data: bytes) -> bytes:
        return with_instances(data, NAMES)

    def _rows(self, read: Exposition, rejects: Sequence[Reject], now: datetime) -> list[Parsed]:
        return rows_of(read, rejects, taken_at=now, cluster=self.cluster)

    def _summary(self, read: Exposition) -> str:
        used = {name for name in read.series["metric"] if is_host_metric(name)}
        return f"{len(used)} metrics of the host"

    def _missing(self, names: set[str]) -> list[str]:
        return [
            f"the collector {flag} is off: no {metric}"
            for flag, metric in COLLECTORS.items()
            if metric not in names
        ]

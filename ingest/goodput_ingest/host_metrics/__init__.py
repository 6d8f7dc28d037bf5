"""Host metrics as node_exporter names them: what a name means, rows of nodes and of their links.

Whoever reads the exporter's series (a scrape, a Prometheus server) brings the same three frames as
for `gpu_metrics`:

    parsed = host_rows(points, series, label_sets, source="node-exporter")

`catalogue.LABELS` are the label names worth keeping.
"""

from goodput_ingest.host_metrics.catalogue import CPU, IDENTITY, LABELS, is_host_metric
from goodput_ingest.host_metrics.rows import host_rows

__all__ = ["CPU", "IDENTITY", "LABELS", "host_rows", "is_host_metric"]

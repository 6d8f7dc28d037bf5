"""Metrics of serving engines: what a name means, rows of counters, gauges and histograms.

Whoever reads the engines' series (a scrape, a Prometheus server) brings the same three frames as
for `gpu_metrics`:

    parsed = serving_rows(points, series, label_sets)

`reference.serving_metrics` has a row for each name that an engine uses. Labels are kept all
(`ALL_LABELS`): those of a series that is in no row become part of its name.
"""

from goodput_serving.metrics.catalogue import ALL_LABELS, is_serving_metric
from goodput_serving.metrics.endpoints import Identity
from goodput_serving.metrics.rows import serving_rows

__all__ = ["ALL_LABELS", "Identity", "is_serving_metric", "serving_rows"]

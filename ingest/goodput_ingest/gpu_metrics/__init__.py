"""GPU metrics as exporters name them: what a name means, whose series it is, rows of raw tables.

Whoever reads exporters' series (a scrape, a Prometheus server) brings them into three frames and
gets rows back:

    label_sets = labels.normalise(frame_of_labels)     # a column a label name, a row a label set
    series = pl.DataFrame({"metric": raw_names, "labels": rows_of_label_sets})
    points = pl.DataFrame({"series": rows_of_series, "ts": moments_utc, "value": floats})
    parsed = gpu_rows(points, series, label_sets, memory=memory)

`labels.NAMES` are the label names worth keeping; `resolve` says what a raw name stands for.
"""

from goodput_ingest.gpu_metrics import labels
from goodput_ingest.gpu_metrics.catalogue import (
    Metric,
    is_exporters,
    is_gpu_metric,
    resolve,
    unread_names,
)
from goodput_ingest.gpu_metrics.memory import Memory
from goodput_ingest.gpu_metrics.recommended import COUNTERS_FILE, missing_counters
from goodput_ingest.gpu_metrics.rows import gpu_rows

__all__ = [
    "COUNTERS_FILE",
    "Memory",
    "Metric",
    "gpu_rows",
    "is_exporters",
    "is_gpu_metric",
    "labels",
    "missing_counters",
    "resolve",
    "unread_names",
]

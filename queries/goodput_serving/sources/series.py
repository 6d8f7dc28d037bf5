"""Series of serving engines out of Prometheus, as `OtherSeries` of ingest has them.

A histogram has some twenty series for each engine, of which pages show quantiles of hours. Whole
steps let all values of an engine have one moment (`grid_samples`).
"""

from collections.abc import Iterable

from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.prometheus_api.answer import Series
from goodput_ingest.prometheus_api.gpu_series import frames_of
from goodput_serving.metrics import ALL_LABELS, catalogue, serving_rows

TABLE = "serving_samples"
is_known, is_read = catalogue.is_of_engine, catalogue.is_serving_metric
is_histogram_part = catalogue.is_histogram_part


def parsed(series: Iterable[Series], *, cluster: str | None) -> list[Parsed]:
    """Return the rows of the engines' series by raw table; skips other series."""
    found = [one for one in series if len(one.times_ms) and is_read(one.name)]
    if not found:
        return []
    return serving_rows(*frames_of(found, ALL_LABELS), cluster=cluster)

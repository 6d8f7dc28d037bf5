"""Series of serving engines on a grid: counters and gauges of a minute, histograms of longer steps.

A histogram has some twenty series for each engine, of which pages show quantiles of hours. Whole
steps let all values of an engine have one moment (`grid_samples`).
"""

from collections.abc import Iterable, Iterator, Sequence

from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.prometheus_api.answer import Answer, Series
from goodput_ingest.prometheus_api.bulk import grid_samples
from goodput_ingest.prometheus_api.client import Client
from goodput_ingest.prometheus_api.gpu_series import frames_of
from goodput_ingest.serving_metrics import (
    ALL_LABELS,
    is_histogram_part,
    is_serving_metric,
    serving_rows,
)


def serving_samples(
    client: Client,
    names: Sequence[str],
    matchers: str,
    span_ms: tuple[int, int],
    steps_ms: tuple[int, int],
) -> Iterator[Answer]:
    """Yield the values of these metrics in a span, of parts of histograms at the second step.

    Raises IngestError where the server fails, or refuses a single metric.
    """
    of_histograms = [name for name in names if is_histogram_part(name)]
    others = [name for name in names if not is_histogram_part(name)]
    for group, step_ms in zip((others, of_histograms), steps_ms, strict=True):
        yield from grid_samples(client, group, matchers, *span_ms, step_ms)


def parsed_serving_rows(series: Iterable[Series], *, cluster: str | None) -> list[Parsed]:
    """Return the rows of the engines' series by raw table; skips other series."""
    found = [one for one in series if len(one.times_ms) and is_serving_metric(one.name)]
    if not found:
        return []
    return serving_rows(*frames_of(found, ALL_LABELS), cluster=cluster)

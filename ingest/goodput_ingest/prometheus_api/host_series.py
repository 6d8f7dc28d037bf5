"""Series of node_exporter on a grid of minutes: one reading of all that a host reports.

A host with 128 cores has a thousand series, of which rows need a few sums; charts of hosts need no
more than minutes. So the server adds the cores up and evaluates all series at the same moments, by
a subquery, which names the metric where `query_range` would need one request more for each.
"""

from collections.abc import Iterable, Iterator, Sequence

from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.host_metrics import CPU, LABELS, host_rows, is_host_metric
from goodput_ingest.prometheus_api.answer import NAME, Answer, Series
from goodput_ingest.prometheus_api.bulk import grid, grid_samples, selector
from goodput_ingest.prometheus_api.client import Client
from goodput_ingest.prometheus_api.gpu_series import frames_of


def host_samples(
    client: Client, names: Sequence[str], matchers: str, start_ms: int, end_ms: int, step_ms: int
) -> Iterator[Answer]:
    """Yield the values of these metrics at whole steps in [start, end]; of CPUs the sums of cores.

    Raises IngestError where the server fails, or refuses a single metric.
    """
    others = [name for name in names if name != CPU]
    if CPU in names:
        window = grid(start_ms, end_ms, step_ms)
        expression = f"(sum without (cpu) ({selector([CPU], matchers)})){window}"
        found = client.query(expression, end_ms)
        named = [
            Series({**one.labels, NAME: CPU}, one.times_ms, one.values) for one in found.series
        ]
        yield Answer(named, found.rejects, found.warnings, found.digest)
    yield from grid_samples(client, others, matchers, start_ms, end_ms, step_ms)


def parsed_host_rows(series: Iterable[Series], *, cluster: str | None) -> list[Parsed]:
    """Return the rows of the hosts' series by raw table; skips other series."""
    found = [one for one in series if len(one.times_ms) and is_host_metric(one.name)]
    if not found:
        return []
    return host_rows(*frames_of(found, LABELS), cluster=cluster)

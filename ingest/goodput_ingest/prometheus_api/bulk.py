"""Queries samples of many metrics: in one answer if the server allows it, else in halves."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from goodput_ingest.prometheus_api.answer import Answer
from goodput_ingest.prometheus_api.client import Client, TooLargeError, TooManySeriesError

SPAN_MIN_MS = 1_000  # where a second of one metric is too much, less is none


def samples(
    client: Client, names: Sequence[str], matchers: str, start_ms: int, end_ms: int
) -> Iterator[Answer]:
    """Yield the raw samples of these metrics in [start, end].

    matchers: further ones of the selector, as `cluster="a"`, or ''. Raises IngestError where the
    server fails, or refuses even the least.
    """
    if not names:
        return
    try:
        yield client.samples(selector(names, matchers), start_ms, end_ms)
    except TooLargeError as error:
        if len(names) > 1:
            half = len(names) // 2
            yield from samples(client, names[:half], matchers, start_ms, end_ms)
            yield from samples(client, names[half:], matchers, start_ms, end_ms)
        elif end_ms - start_ms > SPAN_MIN_MS and not isinstance(error, TooManySeriesError):
            middle_ms = (start_ms + end_ms) // 2
            yield from samples(client, names, matchers, start_ms, middle_ms)
            yield from samples(client, names, matchers, middle_ms, end_ms)
        else:
            raise


def grid_samples(
    client: Client, names: Sequence[str], matchers: str, start_ms: int, end_ms: int, step_ms: int
) -> Iterator[Answer]:
    """Yield the values of these metrics at whole steps in [start, end].

    A subquery names the metric, where `query_range` would need one request more for each. Raises
    IngestError where the server fails, or refuses a single metric.
    """
    if not names:
        return
    try:
        yield client.query(f"{selector(names, matchers)}{grid(start_ms, end_ms, step_ms)}", end_ms)
    except TooLargeError:
        if len(names) == 1:
            raise
        half = len(names) // 2
        for part in (names[:half], names[half:]):
            yield from grid_samples(client, part, matchers, start_ms, end_ms, step_ms)


def grid(start_ms: int, end_ms: int, step_ms: int) -> str:
    """Return the range of a subquery with the whole steps in [start, end]."""
    return f"[{end_ms - start_ms + 1}ms:{step_ms}ms]"


def selector(names: Sequence[str], matchers: str) -> str:
    """Return the selector for the series of these metrics; matchers: further ones, or ''."""
    alternatives = "|".join(names)
    return f'{{__name__=~"{alternatives}"{"," if matchers else ""}{matchers}}}'


def epoch_ms(moment: datetime) -> int:
    """Return a naive UTC moment in epoch milliseconds."""
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)

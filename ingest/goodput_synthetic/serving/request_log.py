"""The log of the requests of a load, as the source `serving-requests` reads it."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from goodput_synthetic.serving.load import Load

COLUMNS = (
    *("request_id", "arrival", "first_token", "end", "input_tokens", "output_tokens"),
    *("cached_tokens", "model", "status", "endpoint", "tenant"),
)


def request_log(loads: Sequence[Load]) -> str:
    """Return the requests of some engines as CSV, in the order of their arrival."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([row[name] for name in COLUMNS] for row in _rows(loads))
    return text.getvalue()


def request_log_lines(loads: Sequence[Load]) -> str:
    """Return the same as JSON lines, without the fields that are not known."""
    return "".join(
        json.dumps({name: value for name, value in row.items() if value != ""}) + "\n"
        for row in _rows(loads)
    )


def _rows(loads: Sequence[Load]) -> Iterator[dict[str, str | int]]:
    every = [(one.arrival_ms, load.engine, one) for load in loads for one in load.requests]
    for _, engine, one in sorted(every, key=lambda row: (row[0], row[1].endpoint)):
        yield {
            "request_id": one.request_id,
            "arrival": _moment(one.arrival_ms),
            "first_token": _moment(one.first_token_ms),
            "end": _moment(one.end_ms),
            "input_tokens": one.input_tokens,
            "output_tokens": one.output_tokens,
            "cached_tokens": one.cached_tokens,
            "model": engine.model,
            "status": one.status,
            "endpoint": endpoint_of(engine.endpoint, dict(engine.labels)),
            "tenant": one.tenant,
        }


def endpoint_of(target: str, labels: dict[str, str]) -> str:
    """Return the endpoint by which samples of the engine are stored."""
    if pod := labels.get("pod"):
        port = target.rpartition(":")[2]
        return f"{labels['namespace']}/{pod}:{port}"
    return target


def _moment(ms: int | None) -> str:
    if ms is None:
        return ""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

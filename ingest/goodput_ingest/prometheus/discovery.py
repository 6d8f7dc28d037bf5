"""What a server has: is it there, the names of its metrics, its targets and their health."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from goodput_ingest import json_lines
from goodput_ingest.prometheus.client import Client
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from goodput_ingest.prometheus.endpoint import Endpoint

NAME_MAX_CHARS = 200
GPU_EXPORTER = re.compile(r"dcgm|nvidia|gpu|rocm|amd[-_]|:(?:9400|9835)\b", re.IGNORECASE)


@dataclass(frozen=True)
class DownTarget:
    """A target that could not be scraped.

    origin: its labels job and instance. is_named_so: its name or port is one of a GPU exporter.
    """

    origin: tuple[str, str]
    is_named_so: bool
    sentence: str


class Discovery:
    """The small questions to one server; use it as a context."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Take the server; nothing is asked yet. Raises IngestError where a secret is missing."""
        self._url = endpoint.base_url
        self._client = Client(endpoint)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the connection."""
        self._client.__exit__(*error)

    def check(self) -> None:
        """Raise IngestError where nobody listens; a front end may well refuse its first page."""
        self._client.reach()

    def metric_names(self, start_s: float, end_s: float) -> list[str]:
        """Return the names of the metrics that had samples between two moments (epoch seconds)."""
        params = {"start": f"{start_s:.3f}", "end": f"{end_s:.3f}"}
        names = self._data("/api/v1/label/__name__/values", params)
        if not isinstance(names, list):
            raise IngestError(f"{self._url}: the names of metrics are {json_lines.kind(names)}.")
        return [name for name in names if isinstance(name, str) and len(name) <= NAME_MAX_CHARS]

    def down_targets(self) -> list[DownTarget]:
        """Return the targets that the server could not scrape last, whosever they are."""
        targets = self._data("/api/v1/targets", {"state": "active"})
        active = targets.get("activeTargets") if isinstance(targets, dict) else None
        if not isinstance(active, list):
            raise IngestError(f"{self._url}: the answer lists no targets.")
        return [_down(target) for target in active if _is_down(target)]

    def _data(self, path: str, params: dict[str, str]) -> Any:
        try:
            return json.loads(self._client.get(path, params))["data"]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise IngestError(f"{self._url}: it answers, but not as Prometheus does.") from error


def _is_down(target: Any) -> bool:
    return isinstance(target, dict) and target.get("health") == "down"


def _down(target: dict[str, Any]) -> DownTarget:
    labels = target.get("labels")
    named = labels if isinstance(labels, dict) else {}
    url = json_lines.printable(str(target.get("scrapeUrl", "")), 200)
    pool = json_lines.printable(str(target.get("scrapePool", "")), 100)
    error = json_lines.printable(str(target.get("lastError", "")), 200)
    return DownTarget(
        (str(named.get("job", "")), str(named.get("instance", ""))),
        is_named_so=GPU_EXPORTER.search(f"{pool} {url}") is not None,
        sentence=f"target {url} of job {pool} is down: {error or 'no reason given'}.",
    )

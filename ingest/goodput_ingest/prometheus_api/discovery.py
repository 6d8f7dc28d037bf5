"""Discovery of a server: whether it answers, its metric names, its targets and their health.

prometheus-api-client sends these small queries through our client, which limits the time and size
of each answer; the library itself does not.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.prometheus_api.client import Client
from goodput_ingest.prometheus_api.endpoint import Endpoint
from goodput_queries.errors import IngestError

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
    """Discovery queries to one server; use it as a context."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Take the server; sends nothing yet. Raises IngestError where a secret is missing."""
        self._url = endpoint.base_url
        self._client = Client(endpoint)
        self._server = PrometheusConnect(self._url, session=_Session(self._url, self._client))

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
        names = self._asked(lambda: self._server.get_label_values("__name__", params=params))
        if not isinstance(names, list):
            raise IngestError(f"{self._url}: the names of metrics are {json_lines.kind(names)}.")
        return [name for name in names if isinstance(name, str) and len(name) <= NAME_MAX_CHARS]

    def down_targets(self) -> list[DownTarget]:
        """Return the targets that the server could not scrape last, whosever they are."""
        targets = self._asked(lambda: self._server.get_targets(state="active"))
        active = targets.get("activeTargets") if isinstance(targets, dict) else None
        if not isinstance(active, list):
            raise IngestError(f"{self._url}: the answer lists no targets.")
        return [_down(target) for target in active if _is_down(target)]

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except (
            *(KeyError, TypeError, ValueError, RecursionError),
            PrometheusApiClientException,
        ) as error:
            raise IngestError(f"{self._url}: it answers, but not as Prometheus does.") from error


class _Session(requests.Session):
    """The session of prometheus-api-client; sends all its requests through our client."""

    def __init__(self, base_url: str, client: Client) -> None:
        super().__init__()
        self._base_url = base_url
        self._client = client

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Return the answer of one of the API's paths; raises IngestError with its sentence."""
        del args
        url = str(kwargs["url"])  # all are GET; the client has headers, certificates, limits
        response = requests.Response()
        response.status_code = 200
        response.url = url
        path = url.removeprefix(self._base_url)
        response._content = self._client.get(path, kwargs.get("params") or {})
        return response


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

"""What a server has: whether it is there, the names of its metrics, its targets and their health.

These answers are small, so prometheus-api-client asks for them; over a session that hangs up after
a time and a size, which it does not do by itself.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from urllib3.util import Retry

from goodput_ingest import json_lines
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from goodput_ingest.prometheus.endpoint import Endpoint

BODY_MAX_BYTES = 32 * 1024 * 1024
NAME_MAX_CHARS = 200
PART_BYTES = 64 * 1024
CONNECT_TIMEOUT_S = 5.0


class Discovery:
    """The small questions to one server; use it as a context."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Take the server; nothing is asked yet. Raises IngestError where a secret is missing."""
        endpoint.tls()  # says which certificate file cannot be read
        self._url = endpoint.base_url
        self._session = _CappedSession(endpoint.timeout_s)
        self._session.verify = (
            (endpoint.ca_file or True) if endpoint.is_certificate_checked else False
        )
        if endpoint.certificate_file:
            key = endpoint.key_file
            own = endpoint.certificate_file
            self._session.cert = own if key is None else (own, key)
        self._server = PrometheusConnect(
            self._url,
            headers=endpoint.headers(),
            auth=endpoint.basic(),
            session=self._session,
            retry=Retry(0, read=False),  # who polls asks again, and waits longer each time
            timeout=endpoint.timeout_s,
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._session.close()

    def check(self) -> None:
        """Raise IngestError where nobody listens; a front end may well refuse its first page."""
        self._asked(self._server.check_prometheus_connection)

    def metric_names(self, start_s: float, end_s: float) -> list[str]:
        """Return the names of the metrics that had samples between two moments (epoch seconds)."""
        params = {"start": f"{start_s:.3f}", "end": f"{end_s:.3f}"}
        names = self._asked(
            lambda: self._server.get_label_values("__name__", params=params)  # never cached
        )
        if not isinstance(names, list):
            raise IngestError(f"{self._url}: the names of metrics are {json_lines.kind(names)}.")
        return [name for name in names if isinstance(name, str) and len(name) <= NAME_MAX_CHARS]

    def down_targets(self) -> list[str]:
        """Return a sentence for each target that the server could not scrape last."""
        targets = self._asked(lambda: self._server.get_targets(state="active"))
        active = targets.get("activeTargets") if isinstance(targets, dict) else None
        if not isinstance(active, list):
            raise IngestError(f"{self._url}: the answer lists no targets.")
        return [_why_down(target) for target in active if _is_down(target)]

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except requests.exceptions.SSLError as error:
            raise IngestError(f"{self._url}: its certificate is not trusted; see ca_file.") from (
                error
            )
        except requests.Timeout as error:
            raise IngestError(
                f"{self._url}: no answer within {self._session.timeout_s:g} s (timeout_s)."
            ) from error
        except PrometheusApiClientException as error:
            raise IngestError(f"{self._url}: {json_lines.printable(str(error), 300)}") from error
        except (KeyError, TypeError, RecursionError, requests.JSONDecodeError) as error:
            raise IngestError(f"{self._url}: it answers, but not as Prometheus does.") from error
        except requests.RequestException as error:
            raise IngestError(
                f"{self._url}: no connection, or it broke off ({_root(error)})."
            ) from error


class _CappedSession(requests.Session):
    """A session whose answers end at a size and a time, however slowly they drip."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self.timeout_s = timeout_s
        self.max_redirects = 3  # the first page is at /graph or /query
        self.trust_env = False  # no passwords out of ~/.netrc

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Return an answer that is read already."""
        deadline = time.monotonic() + self.timeout_s
        kwargs["timeout"] = (min(CONNECT_TIMEOUT_S, self.timeout_s), self.timeout_s)
        kwargs["stream"] = True
        response = super().request(*args, **kwargs)
        found = bytearray()
        for part in response.iter_content(PART_BYTES):
            found += part
            if len(found) > BODY_MAX_BYTES:
                response.close()
                raise requests.RequestException(f"the answer is over {BODY_MAX_BYTES >> 20} MiB")
            if time.monotonic() > deadline:
                response.close()
                raise requests.Timeout
        response._content = bytes(found)
        return response


def _root(error: BaseException) -> str:
    """Return what the deepest cause says: `Connection refused`, not who passed it on."""
    while (deeper := error.__cause__ or error.__context__) is not None:
        error = deeper
    return json_lines.printable(getattr(error, "strerror", None) or str(error), 200)


def _is_down(target: Any) -> bool:
    return isinstance(target, dict) and target.get("health") == "down"


def _why_down(target: dict[str, Any]) -> str:
    url = json_lines.printable(str(target.get("scrapeUrl", "")), 200)
    pool = json_lines.printable(str(target.get("scrapePool", "")), 100)
    error = json_lines.printable(str(target.get("lastError", "")), 200)
    return f"target {url} of job {pool} is down: {error or 'no reason given'}."

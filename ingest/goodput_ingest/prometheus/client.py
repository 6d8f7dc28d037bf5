"""Asking a Prometheus server: one query, one capped answer, one sentence where it goes wrong."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import httpx

from goodput_ingest import json_lines
from goodput_ingest.prometheus.answer import Answer, AnswerError, parse
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from goodput_ingest.prometheus.endpoint import Endpoint

BODY_MAX_BYTES = 128 * 1024 * 1024  # about five million points
ERROR_MAX_BYTES = 64 * 1024
CONNECT_TIMEOUT_S = 5.0
SERVER_STOPS_EARLIER_S = 2.0  # so that its own "timeout" reaches us before we hang up
TOO_LARGE = re.compile(
    r"too many (?:samples|points|series)|maximum resolution|limit|too large|timed? ?out",
    re.IGNORECASE,
)


class TooLargeError(IngestError):
    """The server, or we, will not have so much at once: ask for less."""


class Client:
    """A connection to one server; use it as a context."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Take the server; nothing is asked yet. Raises IngestError where a secret is missing."""
        self._url = endpoint.base_url
        self._timeout_s = endpoint.timeout_s
        self._http = httpx.Client(
            auth=endpoint.basic(),
            headers=endpoint.headers(),
            verify=endpoint.tls(),
            timeout=httpx.Timeout(
                endpoint.timeout_s, connect=min(CONNECT_TIMEOUT_S, endpoint.timeout_s)
            ),
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._http.close()

    def query(self, expression: str, at_ms: int | None = None) -> Answer:
        """Return the answer of `/api/v1/query` at a moment (default: the server's now).

        Raises TooLargeError where less would do, IngestError for all else, with the URL.
        """
        patience_s = max(self._timeout_s - SERVER_STOPS_EARLIER_S, self._timeout_s / 2)
        form = {"query": expression, "timeout": f"{round(patience_s * 1000)}ms"}
        if at_ms is not None:
            form["time"] = f"{at_ms // 1000}.{at_ms % 1000:03d}"
        body = self._post("/api/v1/query", form)
        try:
            return parse(body)
        except AnswerError as error:
            raise IngestError(f"{self._url}: {error}.") from error

    def samples(self, selector: str, start_ms: int, end_ms: int) -> Answer:
        """Return the raw samples in [start, end] at the times at which they were scraped.

        A range selector, not `query_range`: that repeats old values over gaps. Servers before 3.0
        read both ends, those since only the later one, so one millisecond more is asked for.
        """
        return self.query(f"{selector}[{end_ms - start_ms + 1}ms]", end_ms)

    def _post(self, path: str, form: dict[str, str]) -> bytes:
        deadline = time.monotonic() + self._timeout_s
        with self._stated(), self._http.stream("POST", self._url + path, data=form) as response:
            if not response.is_success:
                self._refuse(response, deadline)
            self._refuse_unless_json(response)
            return self._body(response, deadline, BODY_MAX_BYTES)

    def _body(self, response: httpx.Response, deadline: float, max_bytes: int) -> bytes:
        found = bytearray()
        for part in response.iter_bytes():
            found += part
            if len(found) > max_bytes:
                raise TooLargeError(
                    f"{self._url}: the answer is larger than {max_bytes >> 20} MiB; "
                    "ask for a shorter time."
                )
            if time.monotonic() > deadline:
                raise TooLargeError(
                    f"{self._url}: the answer took longer than {self._timeout_s:g} s (timeout_s)."
                )
        return bytes(found)

    def _refuse(self, response: httpx.Response, deadline: float) -> None:
        """Raise what an answer that is no success says."""
        try:
            text = self._body(response, deadline, ERROR_MAX_BYTES)
            parse(text)
            said = ""
        except AnswerError as error:
            said = str(error)
        except IngestError:
            said = ""
        said = json_lines.printable(said, 300)
        status = f"{self._url}: status {response.status_code} {response.reason_phrase}".rstrip()
        if response.status_code in (400, 413, 422, 503, 504) and TOO_LARGE.search(said):
            raise TooLargeError(f"{status}; {said}.")
        if response.status_code in (401, 403):
            raise IngestError(f"{status}; check username and password, or the token.")
        if response.is_redirect:
            raise IngestError(f"{status}; it sends us elsewhere, a login page perhaps. Mend url.")
        if said.startswith("the server said"):
            raise IngestError(f"{status}; {said}.")
        raise IngestError(f"{status}; expected an answer of Prometheus's API.")

    def _refuse_unless_json(self, response: httpx.Response) -> None:
        kind = response.headers.get("content-type", "")
        if "json" not in kind.lower():
            raise IngestError(
                f"{self._url}: the answer is {kind[:50] or 'of no type'}, expected JSON; "
                "url must be that of the server, without /graph or /query."
            )

    @contextmanager
    def _stated(self) -> Iterator[None]:
        """Turn what can happen to a connection into one sentence."""
        try:
            yield
        except httpx.ConnectTimeout as error:
            raise IngestError(f"{self._url}: no connection within a few seconds.") from error
        except httpx.TimeoutException as error:
            raise IngestError(
                f"{self._url}: no answer within {self._timeout_s:g} s (timeout_s)."
            ) from error
        except httpx.ConnectError as error:
            raise IngestError(f"{self._url}: no connection ({error}).") from error
        except httpx.DecodingError as error:
            raise IngestError(f"{self._url}: the answer is badly compressed ({error}).") from error
        except httpx.HTTPError as error:
            raise IngestError(f"{self._url}: the answer broke off ({error}).") from error

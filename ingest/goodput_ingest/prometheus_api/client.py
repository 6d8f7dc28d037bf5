"""Client of a Prometheus server: one query, one answer of limited size, one error sentence."""

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import httpx

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.http_limits import TooLargeAnswerError, body, limited_client, within
from goodput_ingest.prometheus_api.answer import Answer, AnswerError, ManySeriesError, parse
from goodput_ingest.prometheus_api.endpoint import Endpoint
from goodput_queries.errors import IngestError

ERROR_MAX_BYTES = 64 * 1024
SMALL_MAX_BYTES = 32 * 1024 * 1024  # of names and targets
MUCH_BYTES = 1024 * 1024  # of an answer that came too slowly: less of it may come in time
SERVER_STOPS_EARLIER_S = 2.0  # so that its own "timeout" reaches us before we hang up
TOO_LARGE = re.compile(
    r"too many (?:samples|points|series)|maximum resolution|limit|too large|timed? ?out",
    re.IGNORECASE,
)


class TooLargeError(IngestError):
    """The answer exceeds a limit of the server or of the client: query less."""


class TooManySeriesError(TooLargeError):
    """The answer has too many series: a shorter time has as many."""


class Client:
    """A connection to one server; use it as a context."""

    def __init__(self, endpoint: Endpoint, *, api: str = "Prometheus's API") -> None:
        """Take the server and what its API is called; sends nothing yet.

        Raises IngestError where a secret is missing.
        """
        self._url = endpoint.base_url
        self._timeout_s = endpoint.timeout_s
        self._max_bytes, self._max_series = endpoint.answer_max_bytes, endpoint.answer_max_series
        self._api = api
        self._http = limited_client(
            endpoint.tls(),
            auth=endpoint.basic(),
            headers={**endpoint.headers(), "Accept-Encoding": "gzip, deflate"},
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
            return parse(body, self._max_series)
        except ManySeriesError as error:
            raise TooManySeriesError(f"{self._url}: {error} (answer_max_series).") from error
        except AnswerError as error:
            raise IngestError(f"{self._url}: {error}.") from error

    def samples(self, selector: str, start_ms: int, end_ms: int) -> Answer:
        """Return the raw samples in [start, end] at the times at which they were scraped.

        A range selector, not `query_range`: that repeats old values over gaps. Servers before 3.0
        read both ends, those since only the later one, so one millisecond more is asked for.
        """
        return self.query(f"{selector}[{end_ms - start_ms + 1}ms]", end_ms)

    def get(self, path: str, params: Mapping[str, str]) -> bytes:
        """Return the JSON of a small answer; raises IngestError, with the URL."""
        return self._asked("GET", path, SMALL_MAX_BYTES, params=params)

    def _post(self, path: str, form: dict[str, str]) -> bytes:
        return self._asked("POST", path, self._max_bytes, data=form)

    def reach(self) -> None:
        """Raise IngestError where nobody listens; a front end may well refuse its first page."""
        with self._stated(), within(self._timeout_s), self._http.stream("GET", self._url):
            pass

    def _asked(self, method: str, path: str, max_bytes: int, **parts: Any) -> bytes:
        url = self._url + path
        with (
            self._stated(),
            within(self._timeout_s),
            self._http.stream(method, url, **parts) as response,
        ):
            if not response.is_success:
                self._refuse(response)
            self._refuse_unless_json(response)
            try:
                return body(response, max_bytes)
            except TooLargeAnswerError:
                raise TooLargeError(
                    f"{self._url}: the answer is larger than {max_bytes >> 20} MiB; "
                    "ask for a shorter time."
                ) from None
            except httpx.TimeoutException:
                if response.num_bytes_downloaded < MUCH_BYTES:
                    raise
                raise TooLargeError(
                    f"{self._url}: the answer took longer than {self._timeout_s:g} s (timeout_s)."
                ) from None

    def _refuse(self, response: httpx.Response) -> None:
        """Raise the error in an unsuccessful answer."""
        try:
            parse(body(response, ERROR_MAX_BYTES))
            said = ""
        except AnswerError as error:
            said = str(error)
        except TooLargeAnswerError:
            said = ""
        said = json_lines.printable(said, 300)
        status = f"{self._url}: status {response.status_code} {response.reason_phrase}".rstrip()
        if response.status_code in (400, 413, 422, 503, 504) and TOO_LARGE.search(said):
            raise TooLargeError(f"{status}; {said}.")
        if response.status_code in (401, 403):
            raise IngestError(f"{status}; check username and password, or the token.")
        if response.is_redirect:
            raise IngestError(
                f"{status}; it redirects elsewhere, possibly to a login page. Fix url."
            )
        if said.startswith("the server said"):
            raise IngestError(f"{status}; {said}.")
        raise IngestError(f"{status}; expected an answer of {self._api}.")

    def _refuse_unless_json(self, response: httpx.Response) -> None:
        kind = response.headers.get("content-type", "")
        if "json" not in kind.lower():
            raise IngestError(
                f"{self._url}: the answer is {kind[:50] or 'of no type'}, expected JSON; "
                "url must be that of the server, without /graph or /query."
            )

    @contextmanager
    def _stated(self) -> Iterator[None]:
        """Turn connection errors into one sentence."""
        try:
            yield
        except httpx.ConnectTimeout as error:
            raise IngestError(f"{self._url}: no connection within a few seconds.") from error
        except httpx.TimeoutException as error:
            raise IngestError(
                f"{self._url}: no answer within {self._timeout_s:g} s (timeout_s)."
            ) from error
        except httpx.ConnectError as error:
            root = _root(error)
            if isinstance(root, ssl.SSLCertVerificationError):
                raise IngestError(
                    f"{self._url}: its certificate is not trusted; see ca_file."
                ) from error
            reason = json_lines.printable(getattr(root, "strerror", None) or str(root), 200)
            raise IngestError(f"{self._url}: no connection ({reason}).") from error
        except httpx.DecodingError as error:
            raise IngestError(f"{self._url}: the answer is badly compressed ({error}).") from error
        except httpx.HTTPError as error:
            raise IngestError(f"{self._url}: the answer broke off ({error}).") from error


def _root(error: BaseException) -> BaseException:
    """Return the root cause: `Connection refused`, not the errors that wrap it."""
    while (deeper := error.__cause__ or error.__context__) is not None:
        error = deeper
    return error

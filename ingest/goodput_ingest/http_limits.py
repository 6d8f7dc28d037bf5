"""HTTP with a total time and a size for each answer.

httpx limits each read by itself, so that a server that sends a byte now and then can keep a request
open for ever. Here each operation on the socket, looking the name up included, gets what is left
until the deadline of `within`, and the connection is closed then.

    client = limited_client(endpoint...)
    with within(10.0), client.stream("GET", url) as answer:
        text = body(answer, 1_000_000)
"""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import httpcore
import httpx

CONNECT_S = 5.0  # a host that is there takes a connection at once
ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})  # one of another unpacks to anything
_deadline: ContextVar[float] = ContextVar("_deadline")


class TooLargeAnswerError(Exception):
    """An answer has more bytes than asked for."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit what this thread asks in a block: connection, answer and body together."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def limited_client(context: ssl.SSLContext, connections: int = 10, **options: Any) -> httpx.Client:
    """Return a client that keeps to `within` and follows no redirect; options as httpx has them."""
    return httpx.Client(
        transport=_Transport(context, connections),
        timeout=None,  # noqa: S113 -- `within` limits it
        trust_env=False,  # no passwords out of ~/.netrc
        follow_redirects=False,
        **options,
    )


def body(answer: httpx.Response, max_bytes: int) -> bytes:
    """Return what an answer holds, unpacked; raises TooLargeAnswerError, httpx.HTTPError."""
    if answer.headers.get("content-encoding", "").strip().lower() not in ENCODINGS:
        raise httpx.DecodingError("an encoding that was not asked for")
    found = bytearray()
    for part in answer.iter_bytes():
        found += part
        if len(found) > max_bytes:
            raise TooLargeAnswerError
    return bytes(found)


def _left_s() -> float:
    """Return how long this request may still take; raises where that is nothing."""
    left_s = _deadline.get() - time.monotonic()
    if left_s <= 0:
        raise httpcore.ReadTimeout("the time for the whole answer is over")
    return left_s


@contextlib.contextmanager
def _as_httpx() -> Iterator[None]:
    """Raise errors of connections as httpx does: under the same names, of its own."""
    try:
        yield
    except (
        *(httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError),
        *(httpcore.ProxyError, httpcore.UnsupportedProtocol),
    ) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error


class _Transport(httpx.BaseTransport):
    """Sends requests over connections that keep to the deadline."""

    def __init__(self, context: ssl.SSLContext, connections: int) -> None:
        # what httpx makes by itself takes no network backend
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=connections,
            max_keepalive_connections=connections,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx():
            answer = self._pool.handle_request(asked)
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The body of an answer, as it comes."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _Stream(httpcore.NetworkStream):
    """A connection whose every operation ends at the deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        del timeout
        return self._stream.read(max_bytes, _left_s())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        del timeout
        self._stream.write(buffer, _left_s())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        del timeout
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _left_s()))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """Connections that keep to the deadline, from the look-up of the name on."""

    def __init__(self) -> None:
        self._sync = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        del timeout
        until_s = time.monotonic() + min(CONNECT_S, _left_s())
        failed: Exception = httpcore.ConnectTimeout(f"no connection to {host} in time")
        for address in _addresses(host, port, until_s):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                break
            try:
                return _Stream(
                    self._sync.connect_tcp(address, port, left_s, local_address, socket_options)
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed


def _addresses(host: str, port: int, until_s: float) -> list[str]:
    """Return the addresses of a host; nothing stops a look-up, so it is waited for no longer."""
    found: list[str] = []
    failed: list[OSError] = []

    def look_up() -> None:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.extend(dict.fromkeys(str(info[4][0]) for info in infos))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=look_up, daemon=True, name=f"look up {host}")
    thread.start()
    thread.join(max(0.0, until_s - time.monotonic()))
    if failed:
        raise httpcore.ConnectError(str(failed[0])) from failed[0]
    return list(found)  # none: not in time

"""Compresses the dashboard's static files, which are most of a first visit.

Streamlit sends them as they are and leaves compression to a proxy. Their names have a hash of their
content and browsers keep them for a year (`Cache-Control: immutable`), so each file is compressed
once for the life of a server.
"""

import asyncio
import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pyarrow as pa
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SUFFIXES: Final = (".js", ".css", ".json", ".svg", ".wasm")  # fonts and pictures are compressed
# by content coding, the best first: browsers take brotli over TLS and from their own host
CODINGS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "br": partial(pa.Codec("brotli", compression_level=7).compress, asbytes=True),
    "gzip": partial(gzip.compress, compresslevel=9, mtime=0),
}
CONDITIONAL: Final = ("range", "if-none-match", "if-modified-since")


class CompressedAssets:
    """Middleware that answers for static files with brotli or gzip, where the browser takes it.

    base_path: the prefix of all addresses behind a proxy, without slashes at its ends.
    """

    def __init__(self, app: ASGIApp, base_path: str = "") -> None:
        self._app = app
        self._prefix = f"/{base_path}/static/" if base_path else "/static/"
        self._compressed: dict[tuple[str, str], tuple[Message, bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; all but those for text files of the dashboard are passed on."""
        coding = self._coding_of(scope)
        if coding is None:
            await self._app(scope, receive, send)
            return
        key = scope["path"], coding
        if key not in self._compressed:
            answer = _Answer()
            await self._app(scope, _stays_connected, answer.take)
            if answer.start["status"] != 200:  # a path that is none is not kept
                await send(answer.start)
                await send({"type": "http.response.body", "body": bytes(answer.body)})
                return
            body = await run_in_threadpool(CODINGS[coding], bytes(answer.body))
            self._compressed[key] = _as_compressed(answer.start, coding, len(body)), body
        start, body = self._compressed[key]
        await send(start)
        await send({"type": "http.response.body", "body": body})

    def _coding_of(self, scope: Scope) -> str | None:
        """Return how the answer is compressed; None: it is not."""
        if scope["type"] != "http" or scope["method"] != "GET":
            return None
        headers = Headers(scope=scope)
        is_asset = scope["path"].startswith(self._prefix) and scope["path"].endswith(SUFFIXES)
        if not is_asset or any(name in headers for name in CONDITIONAL):
            return None
        accepted = headers.get("accept-encoding", "")
        return next((coding for coding in CODINGS if coding in accepted), None)


async def _stays_connected() -> Message:
    """Wait, as a client that reads on: a file whose client leaves is cut, and would be kept so."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


@dataclass
class _Answer:
    """An answer that is held back until it is whole."""

    start: Message = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.start = message
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")


def _as_compressed(start: Message, coding: str, size: int) -> Message:
    """Return the start of an answer for its compressed body."""
    headers = MutableHeaders(raw=list(start["headers"]))
    del headers["accept-ranges"]
    del headers["etag"]  # of the body as it is
    headers["content-encoding"] = coding
    headers["content-length"] = str(size)
    headers.add_vary_header("accept-encoding")
    return {**start, "headers": headers.raw}

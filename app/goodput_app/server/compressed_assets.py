"""Compresses the dashboard's static files, which are most of a first visit.

Streamlit sends them as they are and leaves compression to a proxy. Their names have a hash of their
content and browsers keep them for a year (`Cache-Control: immutable`), so each file is compressed
once for the life of a server.
"""

import gzip
from dataclasses import dataclass, field
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SUFFIXES: Final = (".js", ".css", ".json", ".svg", ".wasm")  # fonts and pictures are compressed
LEVEL: Final = 9
CONDITIONAL: Final = ("range", "if-none-match", "if-modified-since")


class CompressedAssets:
    """Middleware that answers for static files with gzip, where the browser takes it.

    base_path: the prefix of all addresses behind a proxy, without slashes at its ends.
    """

    def __init__(self, app: ASGIApp, base_path: str = "") -> None:
        self._app = app
        self._prefix = f"/{base_path}/static/" if base_path else "/static/"
        self._compressed: dict[str, tuple[Message, bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; all but those for text files of the dashboard are passed on."""
        if not self._is_asset(scope):
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path not in self._compressed:
            answer = _Answer()
            await self._app(scope, receive, answer.take)
            if answer.start["status"] != 200:  # a path that is none is not kept
                await send(answer.start)
                await send({"type": "http.response.body", "body": bytes(answer.body)})
                return
            body = await run_in_threadpool(gzip.compress, bytes(answer.body), LEVEL, mtime=0)
            self._compressed[path] = _as_compressed(answer.start, len(body)), body
        start, body = self._compressed[path]
        await send(start)
        await send({"type": "http.response.body", "body": body})

    def _is_asset(self, scope: Scope) -> bool:
        if scope["type"] != "http" or scope["method"] != "GET":
            return False
        headers = Headers(scope=scope)
        return (
            scope["path"].startswith(self._prefix)
            and scope["path"].endswith(SUFFIXES)
            and "gzip" in headers.get("accept-encoding", "")
            and not any(name in headers for name in CONDITIONAL)
        )


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


def _as_compressed(start: Message, size: int) -> Message:
    """Return the start of an answer for its compressed body."""
    headers = MutableHeaders(raw=list(start["headers"]))
    del headers["accept-ranges"]
    del headers["etag"]  # of the body as it is
    headers["content-encoding"] = "gzip"
    headers["content-length"] = str(size)
    headers.add_vary_header("accept-encoding")
    return {**start, "headers": headers.raw}

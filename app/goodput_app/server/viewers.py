"""Counts the pages that are open: a server that nobody looks at builds its ledger less often."""

from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send


@dataclass
class Viewers:
    """How many pages are open now; each holds one WebSocket."""

    pages: int = 0


class CountViewers:
    """Middleware that counts open pages. Counts change in the event loop alone."""

    def __init__(self, app: ASGIApp, viewers: Viewers) -> None:
        self._app = app
        self._viewers = viewers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; a WebSocket counts as long as it is open."""
        is_page = scope["type"] == "websocket"
        self._viewers.pages += is_page
        try:
            await self._app(scope, receive, send)
        finally:
            self._viewers.pages -= is_page

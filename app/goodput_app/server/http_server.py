"""Uvicorn as `goodput serve` runs it."""

import socket
from collections.abc import Callable

import httpx
import uvicorn
from streamlit import App

from goodput_app.access.settings import AccessSettings
from goodput_app.server.security_headers import security_headers

START_S = 60  # on a busy machine the first answer takes longer than the ones that it then gives
GRACE_S = 5  # for open requests, after which Ctrl-C means it


def uvicorn_config(app: App, access: AccessSettings) -> uvicorn.Config:
    """Return the settings of uvicorn, whose headers are on every answer, on its own errors too."""
    return uvicorn.Config(
        app,
        access_log=False,
        headers=security_headers(access.frame_ancestors),
        log_level="warning",
        proxy_headers=False,  # who connects decides whom to believe; see access.proxy
        timeout_graceful_shutdown=GRACE_S,
        use_colors=False,
        ws="websockets-sansio",
    )


class HttpServer(uvicorn.Server):
    """Uvicorn that reports readiness once it answers."""

    def __init__(
        self, config: uvicorn.Config, *, on_answer: Callable[[], None], health_url: str
    ) -> None:
        super().__init__(config)
        self._on_answer = on_answer
        self._health_url = health_url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, request `/healthz` over the network, then report readiness."""
        await super().startup(sockets)
        if self.started:
            async with httpx.AsyncClient(trust_env=False, timeout=START_S) as client:
                (await client.get(self._health_url)).raise_for_status()
            self._on_answer()

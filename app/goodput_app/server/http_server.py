"""Uvicorn as `goodput serve` runs it."""

import asyncio
import socket
import time
from collections.abc import Callable

import httpx
import uvicorn
from streamlit import App

from goodput_app.access.settings import AccessSettings
from goodput_app.server.security_headers import security_headers
from goodput_queries.errors import GoodputError

START_S = 60  # on a busy machine the first answer takes longer than the ones that it then gives
RETRY_S = 0.2  # a database that takes in evidence at the start may not answer at once
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
            await self._until_healthy()
            self._on_answer()

    async def _until_healthy(self) -> None:
        """Request `/healthz` until it is well; raises GoodputError where it is not in a minute."""
        ends_s = time.monotonic() + START_S
        async with httpx.AsyncClient(trust_env=False, timeout=START_S) as client:
            while not (answer := await client.get(self._health_url)).is_success:
                if time.monotonic() > ends_s:
                    raise GoodputError(
                        f"{self._health_url} answers {answer.status_code} ({answer.text[:200]}); "
                        "the log above says why."
                    )
                await asyncio.sleep(RETRY_S)

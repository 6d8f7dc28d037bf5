"""An application of the server, asked in-process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from starlette.applications import Starlette


def ask(
    app: Starlette,
    path: str,
    *,
    method: str = "GET",
    peer: tuple[str, int] = ("127.0.0.1", 1),
    base_url: str = "http://localhost",
    **given: Any,
) -> httpx.Response:
    """Return the answer to a request of a peer."""

    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(app, client=peer)
        async with httpx.AsyncClient(transport=transport, base_url=base_url) as client:
            return await client.request(method, path, **given)

    return asyncio.run(answer())

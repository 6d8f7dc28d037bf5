"""An application of the server, asked in-process."""

import asyncio

import httpx


def ask(app, path, *, method="GET", peer=("127.0.0.1", 1), base_url="http://localhost", **given):
    """Return the answer to a request of a peer."""

    async def answer():
        transport = httpx.ASGITransport(app, client=peer)
        async with httpx.AsyncClient(transport=transport, base_url=base_url) as client:
            return await client.request(method, path, **given)

    return asyncio.run(answer())

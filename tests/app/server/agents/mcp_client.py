"""A client of the Model Context Protocol, as an agent has it, of servers here and elsewhere."""

import asyncio
import json

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.app.server.token_site import URL, behind_tokens

from goodput_app.server.agents.route import mcp_route


def site(store):
    """Return an application with the route, behind the check of tokens."""
    return behind_tokens(mcp_route(store, URL))


def over_http(app, token, work):
    """Return what `work` does with a client of an application here, which shows a token."""

    async def connected():
        given = {"Authorization": f"Bearer {token}"}
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, headers=given) as http:
            return await asked(streamable_http_client(f"{URL}/mcp", http_client=http), work)

    return asyncio.run(connected())


async def asked(server, work):
    """Return what `work` does with a client of a server."""
    async with Client(server) as client:
        return await work(client)


def call(name, **arguments):
    """Return work: the call of a tool, which gives its JSON, or its sentence where it refuses."""

    async def work(client):
        result = await client.call_tool(name, arguments)
        (part,) = result.content
        return part.text if result.is_error else json.loads(part.text)

    return work

"""The HTTP server reports that it is ready once it is well, also where that takes a while."""

import asyncio
import contextlib
import socket

import pytest
import uvicorn

from goodput_app.server import http_server
from goodput_app.server.http_server import HttpServer
from goodput_queries.errors import GoodputError


def start(*statuses):
    """Start a server whose health has these statuses in turn; return how often it was asked."""
    asked, ready = [], []

    async def app(_scope, _receive, send):
        status = statuses[min(len(asked), len(statuses) - 1)]
        asked.append(status)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"busy"})

    async def run():
        with contextlib.closing(socket.socket()) as listening:
            listening.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/healthz"
            config = uvicorn.Config(app, lifespan="off", log_level="error")

            def answered():
                ready.append(True)
                server.should_exit = True

            server = HttpServer(config, on_answer=answered, health_url=url)
            await server.serve(sockets=[listening])

    asyncio.run(run())
    return len(asked), ready


def test_a_database_that_is_busy_at_the_start_delays_it():
    assert start(503, 503, 200) == (3, [True])


def test_a_database_that_does_not_answer_ends_it_with_a_sentence(monkeypatch):
    monkeypatch.setattr(http_server, "START_S", 0.1)

    with pytest.raises(
        GoodputError, match=r"/healthz answers 503 \(busy\); the log above says why"
    ):
        start(503)

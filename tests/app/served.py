"""Servers: in a process of their own, their applications in-process, and what tests load."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx
import polars as pl
import uvicorn
from starlette.applications import Starlette

from goodput_app.server.receive import receive_routes
from goodput_queries.evidence.batch import Batch, Reject

PATIENCE_S = 180.0
GOODPUT = [sys.executable, "-c", "from goodput_app.cli.main import main; main()"]


@dataclass
class Server:
    """A `goodput serve` in a process of its own."""

    process: subprocess.Popen[str]
    url: str
    database: Path

    def get(self, path):
        """Return what the server answers to a GET."""
        return httpx.get(f"{self.url}{path}", timeout=PATIENCE_S, trust_env=False)

    def end(self, signal_number):
        """Send a signal, wait, return the exit status."""
        self.process.send_signal(signal_number)
        return self.process.wait(PATIENCE_S)


@contextlib.contextmanager
def program(command, **options):
    """Run a program in a process of its own until the end of the block."""
    usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **usual | options) as process:
        try:
            yield process
        finally:
            process.kill()


def running(*arguments, cwd, **environment):
    """Run a command of the product in a process of its own until the end of the block."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
    return program([*GOODPUT, *arguments], cwd=cwd, env=env)


@contextlib.contextmanager
def serving(database, *options, **environment):
    """Run `goodput serve` until the end of the block; it is ready when it says where it is."""
    command = ["serve", "--db", str(database), *(options or ("--port", "0"))]
    with running(*command, cwd=database.parent, **environment) as process:
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), (url, process.kill(), process.stderr.read())
        yield Server(process, url, database)


@contextlib.contextmanager
def receiving(sources):
    """Serve the routes of senders to these sources until the block ends; yield the address."""
    app = Starlette(routes=receive_routes(list(sources)))
    config = uvicorn.Config(app, port=0, log_level="error")
    server, socket = uvicorn.Server(config), config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    host, port = socket.getsockname()[:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join()


def goodput(*arguments, cwd):
    """Run a command of the product in a process of its own."""
    return subprocess.run(
        [*GOODPUT, *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, timeout=PATIENCE_S,
    )  # fmt: skip


def rows_of(source, count, *, digest="1", rejects=0):
    at = datetime(2026, 11, 20)  # noqa: DTZ001 -- the database holds naive UTC
    uuids = [f"GPU-{number}" for number in range(count)]
    frame = pl.DataFrame({"source": source, "gpu_uuid": uuids, "gpu_instance": "", "ts": at})
    rejected = [Reject(line, "bad") for line in range(rejects)]
    return Batch("gpu_samples", frame, source, "file", digest, rejected)


def ask(app, path, *, method="GET", peer=("127.0.0.1", 1), base_url="http://localhost", **given):
    """Return the answer to a request of a peer."""

    async def answer():
        transport = httpx.ASGITransport(app, client=peer)
        async with httpx.AsyncClient(transport=transport, base_url=base_url) as client:
            return await client.request(method, path, **given)

    return asyncio.run(answer())

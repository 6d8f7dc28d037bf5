"""`goodput mcp`: tools for programs that reason, over standard input and output."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click

from goodput_app.cli.database import built, existing
from goodput_app.cli.options import database_option
from goodput_app.settings import settings
from goodput_queries.database import Store


@click.command()
@database_option
def mcp(*, db: str) -> None:
    """Answer agents over MCP with read-only tools.

    It speaks the Model Context Protocol on standard input and output. The database is open during a
    call only, so that others can load into it.
    """
    from goodput_app.server.agents import protocol  # noqa: PLC0415 -- an extra

    one_at_a_time = threading.Lock()

    @contextmanager
    def opened() -> Iterator[Store]:
        with one_at_a_time, built(db) as store:
            yield store

    with existing(db):  # a wrong path is said at once, not in the first answer
        pass
    asyncio.run(protocol.over_stdio(protocol.server(opened, settings().public_url)))

"""`goodput snapshot`: the configuration of this node, and of a process on it."""

import platform
from typing import IO

import click

from goodput_app.cli.option_table import option
from goodput_ingest.processes import proc
from goodput_ingest.sources.node_snapshot.snapshot import take
from goodput_queries.errors import GoodputError


@click.command()
@option("snapshot.out", type=click.File("ab"), default="-")
@option("snapshot.node", default=platform.node)
@option("snapshot.name")
@option("snapshot.pid", type=click.IntRange(1))
def snapshot(*, out: IO[bytes], node: str, name: str | None, pid: int | None) -> None:
    """Write the configuration of this node, to compare it with others.

    Needs no database. `goodput ingest node-snapshot FILE` reads it on the machine that has one.
    """
    if pid is not None and proc.start_ticks(pid) is None:
        raise GoodputError(f"there is no process {pid} on this machine.")
    out.write(take(node, name, pid))

"""`goodput snapshot`: the configuration of this node, and of a process on it."""

import platform
from typing import IO

import click

from goodput_ingest.processes import proc
from goodput_ingest.sources.node_snapshot.snapshot import take
from goodput_queries.errors import GoodputError


@click.command()
@click.option(
    "--out",
    type=click.File("ab"),
    default="-",
    metavar="FILE",
    help="File that the snapshot is appended to; default: standard output.",
)
@click.option("--node", default=platform.node, help="The scheduler's name of this node.")
@click.option(
    "--name",
    metavar="RUN",
    help="Run that the process is of; default: its $RUN_ID or $SLURM_JOB_ID.",
)
@click.option("--pid", type=click.IntRange(1), help="Process to describe; default: this one.")
def snapshot(*, out: IO[bytes], node: str, name: str | None, pid: int | None) -> None:
    """Write the configuration of this node, to compare it with others.

    Needs no database. `goodput ingest node-snapshot FILE` reads it on the machine that has one.
    """
    if pid is not None and proc.start_ticks(pid) is None:
        raise GoodputError(f"there is no process {pid} on this machine.")
    out.write(take(node, name, pid))

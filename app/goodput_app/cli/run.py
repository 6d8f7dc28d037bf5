"""Commands that record a job without a change to it: `goodput run` and `goodput watch`."""

import os
import platform
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from goodput_ingest.processes import proc
from goodput_ingest.processes import run as runs
from goodput_ingest.processes import watch as watches
from goodput_ingest.processes.command_line import short_name
from goodput_ingest.processes.record import SNAPSHOT, Record, new_record
from goodput_ingest.sources.node_snapshot.snapshot import take
from goodput_messages.printable import printable
from goodput_queries.errors import GoodputError

Command = TypeVar("Command", bound="Callable[..., Any]")
NOT_FOUND, NOT_STARTED = 127, 126  # exit codes of a shell
VISIBLE = "CUDA_VISIBLE_DEVICES"


def record_options(command: Command) -> Command:
    """Add `--name`, `--gpus` and `--dir`."""
    named = click.option(
        "--name",
        metavar="RUN",
        help="Name of the run, the same for restarts of one training task; default: $RUN_ID, "
        "$SLURM_JOB_ID, else the command with the time.",
    )
    gpus = click.option(
        "--gpus",
        metavar="LIST",
        help="GPUs of the job by number or UUID, as in CUDA_VISIBLE_DEVICES (default).",
    )
    folder = click.option(
        "--dir",
        "folder",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="GOODPUT_RUNS",
        default=Path("goodput-runs"),
        metavar="FOLDER",
        help="Folder of the records; default: $GOODPUT_RUNS, ./goodput-runs.",
    )
    return named(gpus(folder(command)))


def run_id(name: str | None, environment: dict[str, str]) -> str | None:
    """Return the run's name as it is given; None: it is not."""
    return name or environment.get("RUN_ID") or environment.get("SLURM_JOB_ID") or None


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@record_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(
    context: click.Context,
    *,
    command: tuple[str, ...],
    name: str | None,
    gpus: str | None,
    folder: Path,
) -> None:
    """Run a command and record it as a job, with no line changed."""
    if shutil.which(command[0]) is None:
        click.echo(f"goodput: {printable(command[0])}: command not found", err=True)
        context.exit(NOT_FOUND)
    if gpus is not None:
        os.environ[VISIBLE] = gpus
    visible = os.environ.get(VISIBLE)
    chosen = run_id(name, dict(os.environ))
    record = new_record(folder, short_name(list(command)), chosen, visible)
    try:
        code = runs.run(list(command), record, partial(_take_snapshot, record))
    except OSError as error:
        click.echo(f"goodput: {printable(command[0])}: {error.strerror}", err=True)
        context.exit(NOT_STARTED)
    runs.say(record, "recorded")
    context.exit(code)


def _take_snapshot(record: Record) -> None:
    """Add the node's configuration to a record; of several ranks on a node one does."""
    if os.environ.get("SLURM_LOCALID", "0") == "0":
        record.write(SNAPSHOT, take(platform.node(), record.run_id))


@click.command()
@record_options
@click.argument("pid", type=click.IntRange(1))
def watch(*, pid: int, name: str | None, gpus: str | None, folder: Path) -> None:
    """Record a process that runs already, until it ends."""
    watched = proc.process(pid)
    if watched is None:
        raise GoodputError(f"there is no process {pid} on this machine.")
    environment = dict(proc.environment(pid))
    visible = gpus or environment.get(VISIBLE)
    record = new_record(folder, watched.name, run_id(name, environment), visible)
    try:
        watches.watch(watched, record)
    except KeyboardInterrupt:
        runs.say(record, f"{watched.name} ({pid}) still runs; what was seen is")
        return
    runs.say(record, f"{watched.name} ({pid}) has ended; its record is")

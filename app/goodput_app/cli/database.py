"""The database of a command: opened, required to exist, or built; and progress on a terminal."""

import contextlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.text import Text

from goodput_app.cli.options import say
from goodput_app.settings import settings
from goodput_messages.printable import printable
from goodput_queries.database import LocalStore, Store, lake_package, open_store
from goodput_queries.errors import StoreError, UnbalancedError
from goodput_queries.remote import RemoteStore
from goodput_queries.storage.opening import IN_MEMORY

BY_RANK = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)  # both before goodput.toml


@contextlib.contextmanager
def opened(db: str) -> Iterator[LocalStore | RemoteStore]:
    """Yield the database at a path, made where there is none."""
    with contextlib.closing(open_store(db, **settings().store_options)) as store:
        yield store


def chosen_lake(url: str | None) -> str | None:
    """Return the lake that a command with `--db` and `--lake` loads into; None: the database."""
    if url is None:
        return None
    context = click.get_current_context()
    sources = [context.get_parameter_source(name) for name in ("db", "lake")]
    if sources == [ParameterSource.COMMANDLINE] * 2:
        raise click.UsageError("rows go to a database or to a lake: name --db or --lake.")
    by_db, by_lake = (BY_RANK.index(s) if s in BY_RANK else len(BY_RANK) for s in sources)
    return None if by_db < by_lake else url


@contextlib.contextmanager
def opened_for_loading(db: str, lake: str | None, cluster: str | None) -> Iterator[Store]:
    """Yield what a command loads into: a lake, or the database where that is None."""
    if lake is None:
        with opened(db) as store:
            yield store
        return
    into = lake_package().store(lake, cluster or settings().lake_cluster)
    with contextlib.closing(into) as store:
        yield store


@contextlib.contextmanager
def existing(db: str) -> Iterator[LocalStore | RemoteStore]:
    """Yield a database that is there: a question makes no empty one."""
    if db != IN_MEMORY and not Path(db).exists():
        raise StoreError(
            f"{db}: there is no such database. Create it with "
            f"`goodput ingest auto PATH --db {quoted(db)}`, or look at `goodput demo`."
        )
    with opened(db) as store:
        yield store


@contextlib.contextmanager
def built(db: str) -> Iterator[Store]:
    """Yield a database whose ledger contains everything that was ingested.

    Where that build is not published the ledger of the build before answers, and a warning says so.
    """
    with existing(db) as store:
        try:
            store.build()
        except UnbalancedError as error:
            say(str(error))
        yield store


@contextlib.contextmanager
def progress() -> Iterator[Callable[[Path, int], None]]:
    """Yield what shows the file and the rows so far on a terminal's standard error."""
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=None)

        def on_progress(path: Path, rows: int) -> None:
            bar.update(task, advance=rows, description=str(Text(printable(str(path)))))

        yield on_progress


@contextlib.contextmanager
def tasks_shown() -> Iterator[Callable[[str, int, int], None]]:
    """Yield what shows on a terminal's standard error how many tasks of a table are done."""
    console = Console(stderr=True)
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    with bar:
        task = bar.add_task("", total=None)

        def on_task(table: str, done: int, all_: int) -> None:
            bar.update(task, completed=done, total=all_, description=table)

        yield on_task


def quoted(path: str) -> str:
    """Return a path as a shell takes it."""
    return shlex.quote(str(path))

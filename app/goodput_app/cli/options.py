"""Shared options, and printing of frames."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click
import polars as pl

from goodput_app.cli import output
from goodput_app.cli.failures import FailedWithRowsError
from goodput_app.settings import settings
from goodput_app.time_expressions import moment_ms
from goodput_messages.printable import printable
from goodput_queries.errors import QueryError
from goodput_queries.scope import Scope, utc_at

Command = TypeVar("Command", bound="Callable[..., Any]")
out_file_option = click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File to write to instead of standard output.",
)
out_folder_option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Output folder; default: the current one.",
)


def database_option(command: Command) -> Command:
    """Add `--db`."""
    return click.option(
        "--db",
        envvar="GOODPUT_DB",
        default=lambda: settings().db,
        metavar="FILE",
        help="Database file; default: $GOODPUT_DB, goodput.toml, goodput.duckdb.",
    )(command)


def lake_option(command: Command) -> Command:
    """Add `--lake`."""
    return click.option(
        "--lake",
        envvar="GOODPUT_LAKE",
        default=lambda: settings().lake.url,
        metavar="URL",
        help="Lake to use instead of a database; default: $GOODPUT_LAKE, goodput.toml.",
    )(command)


def recording_options(command: Command) -> Command:
    """Add `--cluster` and `--timezone` for recorded files that do not say theirs."""
    add_cluster = click.option(
        "--cluster",
        default=lambda: settings().ingest.cluster,
        metavar="NAME",
        help="Cluster name for files that do not contain one.",
    )
    add_timezone = click.option(
        "--timezone",
        default=lambda: settings().ingest.timezone,
        metavar="ZONE",
        help="Time zone for timestamps without an offset, such as Europe/Berlin.",
    )
    return add_cluster(add_timezone(command))


def limit_option(command: Command) -> Command:
    """Add `--limit`."""
    return click.option(
        "--limit",
        type=click.IntRange(0),
        metavar="N",
        help=f"Maximum number of rows (0 = no limit); a table without it: {output.TABLE_ROWS}.",
    )(command)


def output_options(command: Command) -> Command:
    """Add `--format` and `--out`, and print the frame that the command returns."""

    @functools.wraps(command)
    def printing(*args: Any, form: str | None, out: Path | None, **kwargs: Any) -> None:
        form = form or output.format_of(out)
        try:
            print_frame(command(*args, **kwargs), form, out, is_limited=kwargs.get("limit") is None)
        except FailedWithRowsError as failure:
            print_frame(failure.frame, form, out)
            raise

    add_format = click.option(
        "--format",
        "form",
        type=click.Choice(output.FORMATS),
        help="Output format; default: by the suffix of --out, else a table.",
    )
    # click gives back the command it was given, which its types do not say
    return add_format(out_file_option(printing))  # type: ignore[return-value]


def scope_options(command: Command) -> Command:
    """Add window and filters, and hand them on as one `scope`."""

    @functools.wraps(command)
    def scoped(
        *args: Any,
        from_: str | None,
        to: str | None,
        cluster: str | None,
        node: str | None,
        run: str | None,
        team: str | None,
        **kwargs: Any,
    ) -> Any:
        scope = Scope(*window(from_, to), cluster=cluster, node=node, run=run, team=team)
        return command(*args, scope=scope, **kwargs)

    for add in (
        click.option("--team", metavar="NAME", help="Only one team (account)."),
        click.option("--run", metavar="RUN", help="Only one run."),
        click.option("--node", metavar="NAME", help="Only one node."),
        click.option("--cluster", metavar="NAME", help="Only one cluster."),
        click.option("--to", metavar="TIME", help="End of the time range, exclusive."),
        click.option(
            "--from",
            "from_",
            metavar="TIME",
            help="Start of the time range: 2026-11-20T14:00Z, 2026-11-20 (UTC), now-6h, now/d.",
        ),
    ):
        scoped = add(scoped)
    return scoped  # type: ignore[return-value] # as above


def answer_options(command: Command) -> Command:
    """Add the options of a command that answers from the ledger: database, scope and output."""
    return database_option(scope_options(output_options(command)))


def rows_options(command: Command) -> Command:
    """Add the same and `--limit`."""
    return limit_option(answer_options(command))


def print_frame(
    frame: pl.DataFrame, form: str, out: Path | None, *, is_limited: bool = True
) -> None:
    """Print a frame; where nobody named a limit a table shows the first rows and counts all."""
    shown = frame = output.with_currency(frame)
    if is_limited and form == "table" and out is None and frame.height > output.TABLE_ROWS:
        shown = frame.head(output.TABLE_ROWS)
        say(f"{output.TABLE_ROWS} of {frame.height:,} rows; --format json has them all.")
    output.write(shown, form, out)


def window(from_: str | None, to: str | None) -> tuple[int | None, int | None]:
    """Return `--from` and `--to` in epoch ms; an empty window is a usage error."""
    now = datetime.now(UTC)
    try:
        start = None if from_ is None else moment_ms(from_, now)
        end = None if to is None else moment_ms(to, now, is_end=True)
    except QueryError as error:
        raise click.UsageError(str(error)) from error
    if start is not None and end is not None and start >= end:
        raise click.UsageError(f"the window is empty: --from {from_} is not before --to {to}.")
    return start, end


def zone(name: str | None) -> ZoneInfo | None:
    """Return the time zone of this name; an unknown one is a usage error."""
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        text = f"there is no time zone {name!r}; expected like Europe/Berlin."
        raise click.UsageError(text) from error


def instant(text: str | None) -> datetime | None:
    """Return a moment as naive UTC, which is what ingest takes."""
    if text is None:
        return None
    try:
        milliseconds = moment_ms(text, datetime.now(UTC))
    except QueryError as error:
        raise click.UsageError(str(error)) from error
    return utc_at(milliseconds)


def say(text: str) -> None:
    """Print a sentence on standard error."""
    click.echo(printable(text), err=True)

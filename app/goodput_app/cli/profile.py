"""`goodput profile`: see what is read of a job's log, and draft a profile of a new format."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import polars as pl

from goodput_app.cli.failures import FailedWithRowsError
from goodput_app.cli.options import limit_option, output_options, say, zone
from goodput_app.settings import settings
from goodput_app.text.units import count
from goodput_ingest.formats import files
from goodput_ingest.run.plugins import use_plugins
from goodput_ingest.source import ReadOptions, Reject
from goodput_ingest.sources.job_logs import profile_draft as drafts
from goodput_ingest.sources.job_logs.formats import Format, formats, looks_like_step, of_profile
from goodput_ingest.sources.job_logs.profile_examples import check_examples
from goodput_ingest.sources.job_logs.profiles.profile import load
from goodput_ingest.sources.job_logs.reader import LogReader
from goodput_queries.errors import IngestError

TEXT_MAX_CHARS: Final = 200
SCHEMA: Final[dict[str, type[pl.DataType] | pl.DataType]] = {
    "line": pl.Int64,
    "event": pl.String,
    "step": pl.Int64,
    "ts": pl.Datetime("us"),
    "dur_s": pl.Float64,
    "phase": pl.String,
    "kind": pl.String,
    "loss": pl.Float64,
    "text": pl.String,
}
NO_EVENT: Final = ("rejected", "not read")
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.group()
def profile() -> None:
    """See what is read of a job's log; draft a new log format."""
    use_plugins(settings().plugins.folder)


@profile.command(name="try")
@click.argument("log", type=FILE)
@click.argument("format_name", metavar="[PROFILE]", required=False)
@click.option(
    "--timezone",
    default=lambda: settings().ingest.timezone,
    metavar="ZONE",
    help="Time zone for timestamps without an offset, such as Europe/Berlin.",
)
@limit_option
@output_options
def try_(
    *, log: Path, format_name: str | None, timezone: str | None, limit: int | None
) -> pl.DataFrame:
    """Show line by line what is read of LOG.

    PROFILE: a TOML file or the name of a format; without it all formats read, as in an ingest.
    """
    reader = LogReader(str(log), ReadOptions(zone=zone(timezone)), _chosen(format_name))
    rows: list[dict[str, Any]] = []
    lines = 0
    for part in files.parts(log):
        for raw in part.raw_lines:
            lines += 1
            rows += _read(reader, lines, raw)
    rows += map(_rejected, reader.rest())
    found = Counter(row["event"] for row in rows)
    summary = ", ".join(f"{event} {number:,}" for event, number in found.most_common())
    silent = lines - len({row["line"] for row in rows})
    say(f"{count(lines, 'line')}: {summary or 'none is read'}; {silent:,} say nothing.")
    frame = pl.DataFrame(rows[: limit or None], schema=SCHEMA)
    if not found.keys() - set(NO_EVENT):
        raise FailedWithRowsError(f"nothing of {log} is read.", frame)
    return frame


@profile.command()
@click.argument("log", type=FILE)
def draft(*, log: Path) -> None:
    """Propose a profile for LOG, from the lines that repeat with a rising number."""
    lines = [line for part in files.parts(log) for line in part.lines[: drafts.LINES_MAX]]
    click.echo(drafts.draft(log.name.split(".")[0], lines), nl=False)


def _chosen(name: str | None) -> tuple[Format, ...] | None:
    """Return the one format that is to read; None: all."""
    if name is None:
        return None
    if name.endswith(".toml"):
        found = load(Path(name))
        check_examples(found, name)
        return (of_profile(found),)
    known = {one.name: one for one in formats()}
    if name not in known:
        raise IngestError(f"there is no log format {name!r}; known: {', '.join(known)}.")
    return (known[name],)


def _read(reader: LogReader, number: int, raw: bytes) -> Iterator[dict[str, Any]]:
    """Yield a row for each event of a line, its reject, or that it looks like a step."""
    text = raw.decode("utf-8", "replace")[:TEXT_MAX_CHARS]
    is_read = False
    for rows, rejects in reader.read(files.Part(number, raw + b"\n", "")):
        for row in rows:
            yield {**{key: row[key] for key in SCHEMA if key in row}, "line": number, "text": text}
        yield from map(_rejected, rejects)
        is_read = is_read or bool(rows or rejects)
    if not is_read and looks_like_step(text):
        yield {"line": number, "event": NO_EVENT[1], "text": text}


def _rejected(reject: Reject) -> dict[str, Any]:
    text = f"{reject.reason}: {reject.content[:TEXT_MAX_CHARS]}"
    return {"line": reject.line, "event": NO_EVENT[0], "text": text}

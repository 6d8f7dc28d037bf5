"""`goodput compare`: two runs or two time ranges against each other, and a gate for CI."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from goodput_app.cli.database import built
from goodput_app.cli.options import database_option, out_file_option, say, scope_options
from goodput_app.cli.views import extent
from goodput_app.settings import settings
from goodput_app.time_expressions import moment_ms
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError, QueryError, stated
from goodput_queries.names import resolved
from goodput_queries.scope import Scope
from goodput_queries.storage.private import for_others
from goodput_scenarios.comparison.compare import compared
from goodput_scenarios.comparison.gate import NAMES, Limit
from goodput_scenarios.comparison.report import FORMATS, SUFFIXES
from goodput_scenarios.comparison.sides import Side

PERCENT = re.compile(r"(?P<name>[a-z]+)=(?P<percent>\d{1,3}(\.\d{1,6})?) ?%")


def _limit(text: str) -> Limit:
    """Return a limit as the command line has it: slower=3%."""
    found = PERCENT.fullmatch(text.strip())
    if found is None or found["name"] not in NAMES:
        raise click.BadParameter(f"{text!r} is not like slower=3%.")
    ratio = float(found["percent"]) / 100
    if ratio >= 1:
        raise click.BadParameter(f"{text!r}: nothing becomes slower by 100 % or more.")
    return Limit(found["name"], ratio)


@click.command()
@click.argument("a")
@click.argument("b")
@click.option(
    "--fail-on",
    "limits",
    type=_limit,
    metavar="NAME=PERCENT",
    multiple=True,
    help="Exit with 1 where B is slower than A by more, with 95 % confidence, and where they "
    "cannot be compared: slower=3%.",
)
@database_option
@scope_options
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    help="Format of the report; default: by the suffix of --out, else text.",
)
@out_file_option
def compare(
    *,
    a: str,
    b: str,
    limits: tuple[Limit, ...],
    db: str,
    scope: Scope,
    form: str | None,
    out: Path | None,
) -> None:
    """Compare two runs or time ranges, and fail a slower change in CI.

    A run is named by its key, its id or its job's name, a time range like now-2d/now-1d. Filters
    hold for both sides.
    """
    if form is None and out is not None and out.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"{out}: say --format, or name a file .txt, .json, .md or .html.")
    form = form or ("text" if out is None else SUFFIXES[out.suffix.lower()])
    with built(db) as store:
        of_a, of_b = (_side(store, text, scope) for text in (a, b))
        if of_a.scope == of_b.scope:
            what = "run" if of_a.scope.run is not None else "time range"
            raise click.UsageError(f"A and B are the same {what}.")
        found = compared(
            lambda sql, of_side: store.read(sql, scope=of_side, is_kept=True),
            of_a,
            of_b,
            limits,
            extent=extent(store),
        )
    _write(FORMATS[form](found, settings().statement.currency), out)
    failed = [one for one in found.verdicts if one[1].outcome != "passed"]
    if out is not None:
        for limit, verdict in found.verdicts:
            say(f"{verdict.outcome} ({limit}): {verdict.reason}")
    if failed:
        limit, verdict = failed[0]
        raise GoodputError(f"{verdict.outcome} ({limit}): {verdict.reason}.")


def _side(store: Store, text: str, scope: Scope) -> Side:
    """Return a side: a time range, where the text is two times, else a run."""
    if (window := _window(text)) is not None:
        if scope.from_ms is not None or scope.to_ms is not None:
            raise click.UsageError("--from and --to are of runs: the sides are time ranges.")
        whole = resolved(store, scope)
        return Side(text, replace(whole, from_ms=window[0], to_ms=window[1]))
    if scope.run is not None:
        raise click.UsageError("--run is of time ranges: A and B name the runs.")
    return Side(text, resolved(store, replace(scope, run=text)))


def _window(text: str) -> tuple[int, int] | None:
    """Return the ends of a time range START/END; None for what is none, as a run with a slash.

    Where one end is a time the other one has to be: no run is called so.
    """
    begin, slash, end = text.partition("/")
    if not slash:
        return None
    now = datetime.now(UTC)
    ends: list[int] = []
    wrong: list[QueryError] = []
    for one, is_end in ((begin, False), (end, True)):
        try:
            ends.append(moment_ms(one, now, is_end=is_end))
        except QueryError as error:
            wrong.append(error)
    if not ends:
        return None
    if wrong:
        raise click.UsageError(str(wrong[0]))
    if ends[0] >= ends[1]:
        raise click.UsageError(f"the time range {text} is empty.")
    return ends[0], ends[1]


def _write(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text, nl=False)
        return
    with stated(QueryError, f"{out}: cannot be written"), for_others():
        out.write_text(text, encoding="utf-8")

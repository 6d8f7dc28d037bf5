"""`goodput report weekly`: the report of a week as Markdown, or as a page."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo

import click
import polars as pl

from goodput_app import ranked
from goodput_app.cli.database import built
from goodput_app.cli.options import database_option
from goodput_app.settings import settings
from goodput_app.time_expressions import last_week
from goodput_app.weekly.page import page
from goodput_app.weekly.week import week
from goodput_app.weekly.words import Writer
from goodput_billing.statement.statement import read_only, statement
from goodput_messages.printable import printable
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError
from goodput_queries.names import resolved
from goodput_queries.scope import Scope

MARKS = re.compile(r"([\\`*_\[\]<>#|$~])")
MOMENT = timedelta(milliseconds=1)
WORDS = Writer(
    literal=lambda text: MARKS.sub(r"\\\1", printable(str(text))),
    moment=lambda at: f"{at:%Y-%m-%d %H:%M} {at.tzname() or 'UTC'}",
)


@click.command()
@click.option(
    "--date",
    "when",
    type=click.DateTime(["%Y-%m-%d"]),
    help="A day of the week to report; default: the last whole week with data.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("markdown", "html")),
    default="markdown",
    show_default=True,
    help="html: a page that needs nothing else.",
)
@click.option("--cluster", metavar="NAME", help="Only one cluster.")
@click.option("--team", metavar="NAME", help="Only one team (account).")
@database_option
def weekly(
    *, when: datetime | None, form: str, cluster: str | None, team: str | None, db: str
) -> None:
    """Print the report of a week, Monday to Sunday in the zone of [statement]."""
    with built(db) as store:
        clusters = store.read("select * from marts.clusters order by as_of_at desc, cluster")
        if clusters.is_empty():
            raise GoodputError("The database has no data of any cluster.")
        first, last = _evidence(clusters)
        start, end = last_week(last, first) if when is None else _week_of(when, last.tzinfo)
        if last <= start or end <= first:
            raise GoodputError(
                f"There are no data in the week of {start:%Y-%m-%d}: they go from "
                f"{WORDS.moment(first)} to {WORDS.moment(last)}."
            )
        known = max(start, first), min(end, last)
        from_ms, to_ms = (round(at.timestamp() * 1000) for at in known)
        scope = resolved(store, Scope(from_ms, to_ms, cluster=cluster, team=team))
        day = (known[1] - MOMENT).date()
        parts = list(_parts(store, scope, clusters, day))
    title = f"Week of {start:%Y-%m-%d} to {end - MOMENT:%Y-%m-%d}"
    if last < end:
        title += f", data to {WORDS.moment(last)}"
    text = "\n\n".join([f"# {title}", *parts])
    click.echo(page(title, text) if form == "html" else text)


def _evidence(clusters: pl.DataFrame) -> tuple[datetime, datetime]:
    """Return from when to when there are data, in the zone of [statement]; marts.clusters."""
    zone = settings().statement.zone_info()
    first, last = (clusters[name].to_list() for name in ("first_at", "as_of_at"))
    first_at, last_at = (at.replace(tzinfo=UTC).astimezone(zone) for at in (min(first), max(last)))
    return first_at, last_at


def _week_of(day: datetime, zone: tzinfo | None) -> tuple[datetime, datetime]:
    monday = (day - timedelta(days=day.weekday())).replace(tzinfo=zone)
    return monday, monday + timedelta(weeks=1)


def _parts(store: Store, scope: Scope, clusters: pl.DataFrame, last: date) -> Iterator[str]:
    """Yield the paragraphs and tables. last: the last day of the week."""

    def read(sql: str, of: Scope = scope) -> pl.DataFrame:
        found = store.read(sql, scope=of, is_kept=True)
        return found.with_columns(pl.selectors.decimal().cast(pl.Float64))

    of_week = week(scope, clusters, read)
    said = [*WORDS.goodput(of_week), *WORDS.moved(of_week)]
    repairs = read("select * from marts.repairs")
    yield " ".join([*said, *WORDS.happened(ranked.findings(store, scope), repairs)])
    if of_week.compared is not None:
        yield f"## What moved\n\n{WORDS.waterfall(of_week.compared)}"
    yield f"## Teams by waste\n\n{WORDS.teams(of_week)}"
    yield f"## Largest losses\n\n{WORDS.losses(read(ranked.LOSSES_OF_TEAMS))}"
    objectives = read(f"select * from marts.goodput_objectives order by {ranked.OBJECTIVES}")
    of_day = statement(read_only(store), last, settings().statement)
    lines = [*WORDS.objectives(objectives), *WORDS.budgets(of_day.budgets, scope.team)]
    if lines:
        yield "## Objectives and budgets\n\n" + "\n".join(lines)

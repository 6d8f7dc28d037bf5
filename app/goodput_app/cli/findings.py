"""`goodput findings`, `fixes` and `objectives`: what needs a person, and what to do first."""

import getpass
from typing import get_args

import click
import polars as pl

from goodput_app import ranked
from goodput_app.access import finding_state
from goodput_app.cli.database import built
from goodput_app.cli.options import answer_options, database_option, rows_options, say
from goodput_app.cli.views import extent, nothing_ingested
from goodput_app.text.units import count
from goodput_queries.catalog.rules import SEVERITIES
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError
from goodput_queries.findings import Action
from goodput_queries.names import resolved
from goodput_queries.scope import Scope

STATES = ("open", "acknowledged", "dismissed", "closed")


@click.command()
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    help="Only findings in this state; can be given more than once.",
)
@click.option(
    "--severity",
    type=click.Choice(SEVERITIES),
    default="ticket",
    show_default=True,
    help="Only findings of this severity and above.",
)
@rows_options
def findings(
    *, states: tuple[str, ...], severity: str, limit: int | None, db: str, scope: Scope
) -> pl.DataFrame:
    """List what needs a person: losses, faults, anomalies."""
    wanted = SEVERITIES[: SEVERITIES.index(severity) + 1]
    with built(db) as store:
        found = ranked.findings(store, resolved(store, scope), states)
        shown = found.filter(pl.col("severity").is_in(wanted))
        if shown.is_empty():
            say(_nothing(store, db, severity, found.height))
        return shown.head(limit) if limit else shown


def _nothing(store: Store, db: str, severity: str, less_severe: int) -> str:
    """Return the sentence of an empty list; less_severe: findings below the severity."""
    if sentence := nothing_ingested(store, db):
        return sentence
    range_ = extent(store)
    if not less_severe:
        return f"No findings in this time range{range_}."
    return (
        f"No findings of severity {severity} or above{range_}; "
        f"{count(less_severe, 'finding')} below it: add --severity {SEVERITIES[-1]}."
    )


@click.command()
@click.option("--all", "is_all", is_flag=True, help="Also those that give no GPU time back.")
@rows_options
def fixes(*, is_all: bool, limit: int | None, db: str, scope: Scope) -> pl.DataFrame:
    """List what to do first, by what it saves in the time range."""
    with built(db) as store:
        found = ranked.fixes(store, resolved(store, scope))
        if found.is_empty():
            say(_nothing(store, db, SEVERITIES[-1], 0))
        worth = found if is_all else found.filter(pl.col("back_high_ms") > 0)
        if folded := found.height - worth.height:
            say(f"{folded:,} more give no GPU time back: add --all.")
        return worth.head(limit) if limit else worth


@click.command()
@answer_options
def objectives(*, db: str, scope: Scope) -> pl.DataFrame:
    """List goodput objectives with error budget and burn rates."""
    with built(db) as store:
        rows = store.read(
            f"select * from marts.goodput_objectives order by {ranked.OBJECTIVES}",
            scope=resolved(store, scope),
        )
        if rows.is_empty():
            say("No objectives are configured; add them as [[objectives]] in goodput.toml.")
        return rows


@click.command()
@click.argument("action", type=click.Choice(get_args(Action)))
@click.argument("key")
@click.option("--note", metavar="TEXT", help="Reason or comment; required by `dismiss`.")
@click.option(
    "--by", "said_by", default=getpass.getuser, metavar="NAME", help="Your name; default: the user."
)
@database_option
def finding(*, action: Action, key: str, note: str | None, said_by: str, db: str) -> None:
    """Acknowledge, dismiss, reopen or comment on the finding KEY.

    It changes no figure. acknowledge: someone works on this occurrence. dismiss: it is not a
    problem, until it is reopened. reopen: undo either. note: add a comment.
    """
    with built(db) as store:
        rows = store.read(
            "select * from marts.findings where finding_key = $1 order by since_at desc limit 1",
            [key],
        )
        if rows.is_empty():
            raise GoodputError(f"There is no finding {key}; `goodput findings` lists their keys.")
        found = rows.row(0, named=True)
        finding_state.record(store, found, action, said_by, note)
    say(f"{action}: {found['title']} ({found['subject']}).")

"""`goodput findings`, `fixes` and `objectives`: what needs a person, and what to do first."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, get_args

import click

from goodput_app.cli.database import built
from goodput_app.cli.options import (
    database_option,
    limit_option,
    output_options,
    say,
    scope_options,
)
from goodput_app.cli.views import extent
from goodput_app.dashboard import finding_state
from goodput_queries.errors import GoodputError
from goodput_queries.findings import Action
from goodput_queries.names import resolved
from goodput_queries.scope import Scope

if TYPE_CHECKING:
    import polars as pl

    from goodput_queries.storage.store import Store

STATES = ("open", "acknowledged", "dismissed", "closed")
SEVERITIES = ("critical", "warning", "info")
RANK = "case severity when 'critical' then 1 when 'warning' then 2 else 3 end"
ORDER = f"{RANK}, cost desc nulls last, gpu_ms desc nulls last, since_at, finding_key"


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
    default="warning",
    show_default=True,
    help="Only findings of this severity and above.",
)
@limit_option
@database_option
@scope_options
@output_options
def findings(
    *, states: tuple[str, ...], severity: str, limit: int | None, db: str, scope: Scope
) -> pl.DataFrame:
    """List what needs a person: losses, faults, anomalies."""
    wanted = SEVERITIES[: SEVERITIES.index(severity) + 1]
    with built(db) as store:
        return _rows(
            store,
            "select * from marts.findings where list_contains($1, severity) "
            f"and (len($2::varchar[]) = 0 or list_contains($2::varchar[], state)) order by {ORDER}",
            [list(wanted), list(states)],
            resolved(store, scope),
            limit,
        )


def _rows(
    store: Store, sql: str, parameters: list[object], scope: Scope, limit: int | None
) -> pl.DataFrame:
    found = store.read(sql + (f" limit {limit}" if limit else ""), parameters, scope=scope)
    if found.is_empty():
        say(f"No findings here{extent(store)}.")
    return found


@click.command()
@limit_option
@database_option
@scope_options
@output_options
def fixes(*, limit: int | None, db: str, scope: Scope) -> pl.DataFrame:
    """List what to do first, with the recoverable GPU time."""
    with built(db) as store:
        return _rows(
            store,
            "select * from marts.fixes order by back_ms desc, gpu_ms desc nulls last, fix, target",
            [],
            resolved(store, scope),
            limit,
        )


@click.command()
@database_option
@scope_options
@output_options
def objectives(*, db: str, scope: Scope) -> pl.DataFrame:
    """List goodput objectives with error budget and burn rates."""
    with built(db) as store:
        rows = store.read(
            "select * from marts.goodput_objectives "
            "order by is_burning desc, budget_spent_ratio desc nulls last, name",
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

"""`goodput adjust`: notes, disputes and credits on statements."""

import functools
import getpass
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

import click
import polars as pl

from goodput_app.cli.database import built
from goodput_app.cli.options import database_option, limit_option, output_options, say
from goodput_app.cli.report import day
from goodput_app.settings import settings
from goodput_billing.adjustments import record
from goodput_billing.adjustments.record import Target
from goodput_billing.statement import adjustments


def _money(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise click.BadParameter(f"{text!r} is not an amount; expected like 12.50.") from None


@click.group()
def adjust() -> None:
    """Write notes, disputes and credits on statements."""


def _said(command: Callable[..., Any]) -> Callable[..., Any]:
    for add in (
        database_option,
        click.option(
            "--by", "made_by", default=getpass.getuser, metavar="NAME",
            help="Your name; default: the user.",
        ),
        click.option("--reason", required=True, metavar="TEXT", help="Shown on statements."),
    ):  # fmt: skip
        command = add(command)
    return command


def _about(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the day and what it is about, handed on as one `target`."""

    @functools.wraps(command)
    def aimed(
        *, when: date, account: str, user: str | None, line: str | None, cluster: str | None,
        **others: Any,
    ) -> Any:  # fmt: skip
        return command(target=Target(when, account, user, line, cluster), **others)

    decorated: Callable[..., Any] = aimed
    for add in (
        click.option("--cluster", metavar="NAME", help="Required where the account is on several."),
        click.option("--line", metavar="LINE", help="Only a run id, or a kind such as usage."),
        click.option("--user", metavar="NAME", help="Only this user."),
        click.option("--account", required=True, metavar="NAME", help="The account."),
        click.argument("when", type=day, metavar="DATE"),
    ):
        decorated = add(decorated)
    return decorated


def _amount(*, is_required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "--currency", "code", metavar="CODE", help="Of the amount; default: the statement's."
        )(command)
        return click.option(
            "--amount",
            type=_money,
            required=is_required,
            metavar="AMOUNT",
            help="What is given back, as 12.50.",
        )(command)

    return add


@adjust.command()
@_about
@_said
def note(*, target: Target, reason: str, made_by: str, db: str) -> None:
    """Add a note to the statement of DATE and the next one."""
    _speak("note", target, reason, made_by, db)


@adjust.command()
@_about
@_said
def dispute(*, target: Target, reason: str, made_by: str, db: str) -> None:
    """Dispute what the statement of DATE says."""
    _speak("dispute", target, reason, made_by, db)


def _speak(kind: str, target: Target, reason: str, made_by: str, db: str) -> None:
    with built(db) as store:
        made = record.speak(
            store, settings().statement, kind, target, reason=reason, made_by=made_by
        )
    click.echo(made)
    say(f"{kind} {made}: {target.when}, account {target.account}.")


@adjust.command()
@click.argument("dispute_id", metavar="ID")
@click.option(
    "--accepted/--rejected",
    "is_accepted",
    required=True,
    default=None,
    help="Outcome of the dispute.",
)
@_amount(is_required=False)
@_said
def resolve(
    *,
    dispute_id: str,
    is_accepted: bool,
    amount: Decimal | None,
    code: str | None,
    reason: str,
    made_by: str,
    db: str,
) -> None:
    """Resolve the dispute ID; an accepted one may carry a credit."""
    outcome = "accepted" if is_accepted else "rejected"
    with built(db) as store:
        made = record.resolve(
            store, settings().statement, dispute_id, outcome,
            reason=reason, made_by=made_by, amount=amount, code=code,
        )  # fmt: skip
    click.echo(made)
    say(f"dispute {dispute_id}: {outcome}.")


@adjust.command()
@_about
@_amount(is_required=True)
@_said
def credit(
    *, target: Target, amount: Decimal, code: str | None, reason: str, made_by: str, db: str
) -> None:
    """Give back a part of the closed day DATE on the next statement."""
    with built(db) as store:
        made = record.credit(
            store, settings().statement, target, amount,
            reason=reason, made_by=made_by, code=code,
        )  # fmt: skip
    click.echo(made)
    say(f"credit {made}: the next statement that closes has it.")


@adjust.command("list")
@limit_option
@database_option
@output_options
def list_(*, limit: int | None, db: str) -> pl.DataFrame:
    """List notes, disputes and credits with their status."""
    with built(db) as store:
        found = adjustments.listed(store)
    if found.is_empty():
        say("There are no notes, disputes or credits.")
    return found.head(limit) if limit else found

"""`goodput notify`: try the targets of notifications, or list what would be sent now."""

import getpass
from datetime import UTC, datetime

import click
import polars as pl

from goodput_app.cli.database import built
from goodput_app.cli.failures import FailedWithRowsError
from goodput_app.cli.options import database_option, output_options, say
from goodput_app.notify.notifier import Plan, decided
from goodput_app.settings import Settings, settings, settings_file
from goodput_messages.message import headline
from goodput_messages.send import send, trial
from goodput_messages.targets import AnyTarget
from goodput_queries.errors import GoodputError

TESTED = ("target", "to", "status", "error")
PLANNED = ("target", "to", "event", "recipient", "findings", "message")


def notification_plan(chosen: Settings) -> Plan:
    """Return who is notified by these settings."""
    return Plan(chosen.notify, chosen.public_url, chosen.report.mail)


@click.command()
@click.option("--test", "is_test", is_flag=True, help="Send a test message to each target.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="List what would be sent now.")
@click.option(
    "--user",
    default=getpass.getuser,
    metavar="NAME",
    help="With --test: the user that a target `owner` writes to; default: you.",
)
@database_option
@output_options
def notify(*, is_test: bool, is_dry_run: bool, user: str, db: str) -> pl.DataFrame:
    """Try the notifications of goodput.toml: --test or --dry-run.

    `goodput serve` sends them. The exit code is 1 if a target rejects its test message.
    """
    if is_test == is_dry_run:
        raise click.UsageError("give either --test or --dry-run.")
    plan = notification_plan(settings())
    if not plan.targets:
        raise GoodputError(
            f"{settings_file()}: no target is named under [[notify]]; "
            "docs/notifications.md has examples."
        )
    return _tested(plan, user) if is_test else _planned(plan, db)


def _tested(plan: Plan, user: str) -> pl.DataFrame:
    """Send a test to each target; raises with the rows where one rejected it."""
    errors = [_error(plan, target, user) for target in plan.targets]
    rows = [
        (one.label, one.kind, "sent" if error is None else "failed", error)
        for one, error in zip(plan.targets, errors, strict=True)
    ]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(TESTED, pl.String), orient="row")
    if failed := sum(error is not None for error in errors):
        raise FailedWithRowsError(f"{failed} of {frame.height} targets failed.", frame)
    return frame


def _error(plan: Plan, target: AnyTarget, user: str) -> str | None:
    """Send a test message; return why it was not taken, None where it was."""
    now = datetime.now(UTC)
    try:
        send(trial(target, now, user), target, now, plan.mail)
    except GoodputError as error:
        return str(error)
    return None


def _planned(plan: Plan, db: str) -> pl.DataFrame:
    """Return the messages that are due now; grouping delays are not waited for."""
    now = datetime.now(UTC)
    kinds = {one.label: one.kind for one in plan.targets}
    with built(db) as store:
        messages = [
            one for found in decided(store, plan, now, waits=False) for one in found.messages
        ]
    if not messages:
        say("Nothing would be sent: no target has a new open finding.")
    rows = [
        (
            one.target, kinds[one.target], one.event, one.recipient or None, len(one.notices),
            headline(one),
        )
        for one in messages
    ]  # fmt: skip
    schema = {name: pl.Int64 if name == "findings" else pl.String for name in PLANNED}
    return pl.DataFrame(rows, schema=schema, orient="row")

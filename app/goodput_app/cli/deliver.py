"""`goodput report --deliver`: what cron and systemd call."""

import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import date

import click

from goodput_app.cli.database import built
from goodput_app.cli.options import say
from goodput_app.settings import Settings, settings
from goodput_billing.delivery.deliver import Outcome, Plan, delivery_lock
from goodput_billing.delivery.deliver import deliver as deliver_day
from goodput_billing.delivery.due import deliver_due, last_day
from goodput_queries.errors import GoodputError


def plan_of(chosen: Settings, db: str) -> Plan:
    """Return where the statements of a database go by these settings."""
    return Plan(chosen.report.folder_for(db), chosen.report, chosen.statement, wait=_wait)


def deliver(db: str, when: date | None, *, closes_now: bool) -> None:
    """Deliver the statement of a day, or all that are due; print the files in the folder.

    Raises GoodputError where something has not got everywhere.
    """
    if closes_now and when is None:
        raise click.UsageError("--close with --deliver needs the --date that it is to close.")
    plan = plan_of(settings(), db)
    with built(db) as store, delivery_lock(plan.folder):
        if when is not None:
            asked = replace(plan, is_asked=True)
            outcomes = [deliver_day(store, when, asked, closes_now=closes_now)]
        else:
            outcomes = deliver_due(store, plan, last_day(plan.statement, plan.now()))
    _report(outcomes, plan, is_asked=when is not None)


def _report(outcomes: Iterable[Outcome], plan: Plan, *, is_asked: bool) -> None:
    reported = [one for one in outcomes if is_asked or one.done or not one.is_settled]
    for outcome in reported:
        for name in outcome.entry.files if outcome.entry and outcome.done else ():
            click.echo(str(plan.folder / name))
        what = "not delivered" if outcome.entry is None else ", ".join(outcome.done) or "no change"
        say(f"{outcome.when}: {what}. {outcome.status}")
    if not reported:
        say("No statement is due.")
    errors = [f"{one.when}: {error}" for one in reported for error in one.errors]
    for error in errors:
        say(error)
    if errors:
        count = "1 delivery" if len(errors) == 1 else f"{len(errors)} deliveries"
        raise GoodputError(f"{count} failed; run the same command to retry.")


def _wait(seconds: float) -> bool:
    time.sleep(seconds)
    return False

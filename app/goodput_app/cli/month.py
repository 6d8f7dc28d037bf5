"""`goodput report month`: every line of a month's statements in one file a format."""

from datetime import datetime, timedelta
from pathlib import Path

import click

from goodput_app.cli.database import built
from goodput_app.cli.options import database_option, say
from goodput_app.settings import settings
from goodput_billing.render import files
from goodput_billing.render.wording import money
from goodput_billing.statement import one_account, window
from goodput_billing.statement.days import Day, day_of, days_in_month
from goodput_billing.statement.statement import Statement, statement
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError, QueryError

MS_PER_HOUR = 3_600_000


@click.command()
@click.option(
    "--month",
    "of",
    type=click.DateTime(["%Y-%m"]),
    metavar="YYYY-MM",
    help="Default: the month before this one, in the zone of [statement].",
)
@database_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Output folder; default: the current one.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(files.LINE_FORMATS),
    multiple=True,
    default=("csv",),
    show_default=True,
    help="Format to write; may be given again.",
)
@click.option("--account", metavar="NAME", help="Of one account, without data of others.")
def month(
    *, of: datetime | None, db: str, out: Path, formats: tuple[str, ...], account: str | None
) -> None:
    """Write every line of the statements of a month's days: as billed, or as they stand."""
    with built(db) as store:
        days, whole = _with_evidence(store, _first_of(of))
        made = [statement(store, day.date, settings().statement) for day in days]
        if account is not None:
            made = _of_account(store, made, account)
        for form in dict.fromkeys(formats):
            found = [files.content(one, form) for one in made]
            name = f"{days[0].date:%Y-%m}" + files.of_whom(made[0])
            click.echo(str(files.save(files.of_days(found, form), out, name, form)))
    total = sum(one.total_cost for one in made)
    closed = sum(one.is_closed for one in made)
    said = [f"{days[0].date:%Y-%m}: {money(total)} {made[-1].policy.currency}."]
    said.append(f"{closed} of {len(made)} days are closed.")
    if closed < len(made):
        said.append("Figures of the others may still change.")
    if len(days) < whole:
        said.append(f"{whole - len(days)} days of the month have no evidence.")
    say(" ".join(said))
    unpriced_ms = sum(
        int(one.rows.filter(one.rows["price_per_gpu_h"].is_null())["gpu_ms"].sum()) for one in made
    )
    if unpriced_ms:
        say(f"{unpriced_ms / MS_PER_HOUR:,.1f} GPU-hours have no price and are not included.")


def _of_account(store: Store, made: list[Statement], account: str) -> list[Statement]:
    """Return the days that know an account as it sees them; raises QueryError if none does."""
    found, unknown = [], None
    for one in made:
        try:
            found.append(one_account.of_account(store, one, account))
        except QueryError as error:
            unknown = error
    if not found and unknown is not None:
        raise unknown
    return found


def _first_of(month: datetime | None) -> datetime:
    """Return the first of a month, of the one before this where none is given."""
    if month is not None:
        return month
    today = datetime.now(settings().statement.zone_info())
    return (today.replace(day=1) - timedelta(days=1)).replace(day=1)


def _with_evidence(store: Store, first: datetime) -> tuple[list[Day], int]:
    """Return the days of a month that the ledger reaches, and how many the month has."""
    policy, count = settings().statement, days_in_month(first.date())
    days = [day_of(first.date() + timedelta(days=n), policy) for n in range(count)]
    from_ms, to_ms = window.evidence_bounds(store)
    known = [day for day in days if day.from_ms < to_ms and from_ms < day.to_ms]
    if not known:
        raise GoodputError(
            f"{first:%Y-%m} has no evidence; name another month, like --month {_month_of(from_ms)}."
            if to_ms
            else "The ledger is empty: ingest evidence first (goodput ingest --help)."
        )
    return known, count


def _month_of(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, settings().statement.zone_info()):%Y-%m}"

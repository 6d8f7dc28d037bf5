"""`goodput report month`: a month's statements as one: every line, or a page to be read."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import click

from goodput_app.cli.database import built
from goodput_app.cli.options import database_option, out_folder_option, say
from goodput_app.settings import settings
from goodput_billing.render import files
from goodput_billing.render.presentation import status_of_days
from goodput_billing.render.wording import money
from goodput_billing.statement import one_account, window
from goodput_billing.statement.days import Day, day_of, days_in_month
from goodput_billing.statement.several_days import together
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
@out_folder_option
@click.option(
    "--format",
    "formats",
    type=click.Choice(files.FORMATS),
    multiple=True,
    default=("csv",),
    show_default=True,
    help="Format to write; may be given again.",
)
@click.option("--account", metavar="NAME", help="Of one account, without data of others.")
def month(
    *, of: datetime | None, db: str, out: Path, formats: tuple[str, ...], account: str | None
) -> None:
    """Write a month's statements: each line (CSV, Parquet, FOCUS), or as one page (HTML, PDF)."""
    with built(db) as store:
        days, whole = _with_evidence(store, _first_of(of))
        of_all = [statement(store, day.date, settings().statement) for day in days]
        made = of_all if account is None else _of_account(store, of_all, account)
        month, missing = days[0].date, whole - len(days)
        name = f"{month:%Y-%m}" + files.of_whom(made[0])
        several = None
        for form in dict.fromkeys(formats):
            if form in files.LINE_FORMATS:
                found = files.of_days([files.content(one, form) for one in made], form)
            else:
                several = several or together(
                    store, of_all, period=f"{month:%B %Y}", missing=missing, account=account
                )
                found = files.page_of_days(several, form)
            click.echo(str(files.save(found, out, name, form)))
    say(f"{month:%Y-%m}: {_totals(made)}. {status_of_days(made, missing)}")
    unpriced_ms = sum(
        int(one.rows.filter(one.rows["price_per_gpu_h"].is_null())["gpu_ms"].sum()) for one in made
    )
    if unpriced_ms:
        say(f"{unpriced_ms / MS_PER_HOUR:,.1f} GPU-hours have no price and are not included.")


def _totals(made: Sequence[Statement]) -> str:
    """Return what the days come to, in each of their currencies."""
    sums: dict[str, Decimal] = {}
    for one in made:
        code = one.policy.currency
        sums[code] = sums.get(code, Decimal(0)) + one.total_cost
    return " and ".join(f"{money(total, code=code)} {code}" for code, total in sums.items())


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

"""The statements of several days as one: amounts as each day has them, the rest as known now."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from goodput_billing.statement import one_account
from goodput_billing.statement.account_measures import COLUMNS
from goodput_billing.statement.days import Day
from goodput_billing.statement.statement import Statement, as_known
from goodput_billing.statement.window import added_up
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError


@dataclass(frozen=True)
class SeveralDays:
    """The statements of days in their order, and what they come to.

    period: what they are called together; missing: how many days of it have no evidence. whole: one
    statement from the first to the last day, without bookings; its rows have a column `day`, its
    accounts no comparisons, its budgets are those of the last day. account: as of a statement.
    """

    period: str
    missing: int
    days: Sequence[Statement]
    whole: Statement

    @property
    def is_closed(self) -> bool:
        """Say whether the rows of all days are fixed, and no day is missing."""
        return all(one.is_closed for one in self.days) and not self.missing


def together(
    store: Store,
    days: Sequence[Statement],
    *,
    period: str | None = None,
    missing: int = 0,
    account: str | None = None,
) -> SeveralDays:
    """Return the statements of whole days as one, or what one account has of them.

    period: by default from the first day to the last. Raises GoodputError where the days are not in
    one currency, QueryError for an account that none of them knows.
    """
    first, last = days[0], days[-1]
    currencies = sorted({one.policy.currency for one in days})
    if len(currencies) > 1:
        raise GoodputError(
            f"the days are in several currencies ({', '.join(currencies)}): name days in one, or "
            "write CSV, Parquet or FOCUS, whose lines have theirs."
        )
    window = Day(first.day.date, last.day.zone, first.day.from_ms, last.day.to_ms)
    rows = pl.concat(
        [one.rows.drop(COLUMNS).with_columns(pl.lit(one.day.date).alias("day")) for one in days],
        how="vertical_relaxed",
    )
    whole = replace(
        last,
        day=window,
        bookings=[],
        accounts=added_up(one.accounts for one in days),
        adjustments=pl.concat([one.adjustments for one in days]).unique(maintain_order=True),
        known_parts={},
        **as_known(store, window, rows),
    )
    if account is not None:
        whole = one_account.of_account(store, whole, account)
    return SeveralDays(period or _from_to(days), missing, days, whole)


def _from_to(days: Sequence[Statement]) -> str:
    first, last = days[0].day.date, days[-1].day.date
    end = f"{last.day} {last:%B %Y}"
    if first == last:
        return end
    begin = f"{first.day}"
    if (first.year, first.month) != (last.year, last.month):
        begin += f" {first:%B}" if first.year == last.year else f" {first:%B %Y}"
    return f"{begin} to {end}"

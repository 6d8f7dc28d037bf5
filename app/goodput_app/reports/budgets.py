"""Budgets of a month: what is spent, what it will come to if it goes on, what was allowed."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from goodput_app.reports.days import days_in_month
from goodput_app.reports.rounding import nearest
from goodput_app.reports.rows import CENTS
from goodput_app.reports.summary import NOBODYS

if TYPE_CHECKING:
    from goodput_app.reports.days import Day
    from goodput_app.reports.summary import Days
    from goodput_queries.store import Store

SCHEMA = {
    "account": pl.String(),
    "cluster": pl.String(),
    "month_usd": CENTS,
    "forecast_usd": CENTS,
    "budget_usd": CENTS,
    "spent_ratio": pl.Float64(),
}


def budgets(store: Store, day: Day, days: Days, seen: Fraction | None = None) -> pl.DataFrame:
    """Return the month of every account, all clusters together, and of those with a budget for one.

    seen: days of the month with evidence; None: every one of `days`, whole. forecast_usd: spent /
    seen x days of the month; null while nothing is seen. cluster: null is all of them.
    budget_usd: null where the account has none. spent_ratio: of the budget.
    """
    allowed = {
        (account, cluster or None): usd
        for account, cluster, usd in store.read(
            "select account, cluster, usd_per_month from marts.statement_budgets "
            "where usd_per_month is not null",
            scope=day.scope,
        ).rows()
    }
    spent: defaultdict[tuple[str, str | None], Decimal] = defaultdict(lambda: Decimal("0.00"))
    for totals in days.month:
        for (cluster, account), usd in totals.items():
            if account not in NOBODYS.values():
                spent[account, None] += usd
                spent[account, cluster] += usd
    keys = {key for key in spent if key[1] is None} | set(allowed)
    whole, seen = days_in_month(day.date), Fraction(len(days.month)) if seen is None else seen
    rows = []
    for key in sorted(keys, key=lambda key: (key[0], key[1] or "")):
        month, budget = spent[key], allowed.get(key)
        rows.append({
            "account": key[0],
            "cluster": key[1],
            "month_usd": month,
            "forecast_usd": _cents(Fraction(month) * whole / seen) if seen else None,
            "budget_usd": budget,
            "spent_ratio": float(month / budget) if budget else None,
        })  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA)


def _cents(amount: Fraction) -> Decimal:
    return Decimal(nearest(amount.numerator * 100, amount.denominator)).scaleb(-2)

"""Budgets of a month: what is spent, what it will come to if it goes on, what was allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from goodput_billing.statement.days import month_ms
from goodput_billing.statement.forecast import HOUR_MS, forecast
from goodput_billing.statement.rows import CENTS
from goodput_billing.statement.summary import NOBODYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goodput_billing.statement.days import Day
    from goodput_billing.statement.settings import StatementSettings
    from goodput_billing.statement.summary import CoveredDay
    from goodput_queries.storage.store import Store

SCHEMA = {
    "account": pl.String(),
    "cluster": pl.String(),
    "month_usd": CENTS,
    "forecast_usd": CENTS,
    "forecast_low_usd": CENTS,
    "forecast_high_usd": CENTS,
    "covered_h": pl.Float64(),
    "basis": pl.String(),
    "budget_usd": CENTS,
    "spent_ratio": pl.Float64(),
}


def budgets(
    store: Store, day: Day, month: Sequence[CoveredDay], settings: StatementSettings
) -> pl.DataFrame:
    """Return the month of every account, all clusters together, and of those with a budget for one.

    forecast_usd, with its bounds: see `forecast`; null while less than a day is covered. covered_h,
    basis: what it rests on. cluster: null is all of them. budget_usd: null where the account has
    none. spent_ratio: of the budget.
    """
    allowed = {
        (account, cluster or None): usd
        for account, cluster, usd in store.read(
            "select account, cluster, usd_per_month from marts.statement_budgets "
            "where usd_per_month is not null",
            scope=day.scope,
        ).rows()
    }
    spent = {account for of_day in month for _, account in of_day.totals}
    keys = {(account, None) for account in spent - set(NOBODYS.values())} | set(allowed)
    whole_ms = month_ms(day.date, settings)
    rows = []
    for account, cluster in sorted(keys, key=lambda key: (key[0], key[1] or "")):
        found = forecast(month, whole_ms, account, cluster)
        budget = allowed.get((account, cluster))
        rows.append({
            "account": account,
            "cluster": cluster,
            "month_usd": found.month_usd,
            "forecast_usd": found.expected_usd,
            "forecast_low_usd": found.low_usd,
            "forecast_high_usd": found.high_usd,
            "covered_h": found.covered_ms / HOUR_MS,
            "basis": found.basis,
            "budget_usd": budget,
            "spent_ratio": float(found.month_usd / budget) if budget else None,
        })  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA)

"""Budgets of a month: what is spent, what it will come to if it goes on, what was allowed."""

from collections.abc import Sequence

import polars as pl

from goodput_billing.statement.amounts.rows import CENTS
from goodput_billing.statement.amounts.summary import NOBODYS, CoveredDay
from goodput_billing.statement.days import Day, month_ms
from goodput_billing.statement.forecast import HOUR_MS, forecast
from goodput_billing.statement.settings import StatementSettings
from goodput_queries.database import Store

SCHEMA = {
    "account": pl.String(),
    "cluster": pl.String(),
    "month_cost": CENTS,
    "forecast_cost": CENTS,
    "forecast_low_cost": CENTS,
    "forecast_high_cost": CENTS,
    "covered_h": pl.Float64(),
    "basis": pl.String(),
    "budget_cost": CENTS,
    "spent_ratio": pl.Float64(),
}


def budgets(
    store: Store, day: Day, month: Sequence[CoveredDay], settings: StatementSettings
) -> pl.DataFrame:
    """Return the month of every account, all clusters together, and of those with a budget for one.

    forecast_cost, with its bounds: see `forecast`; null while less than a day is covered.
    covered_h, basis: its evidence. cluster: null is all of them. budget_cost: null: the account has
    none. spent_ratio: of the budget.
    """
    allowed = {
        (account, cluster or None): cost
        for account, cluster, cost in store.read(
            "select account, cluster, cost_per_month from marts.statement_budgets "
            "where cost_per_month is not null",
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
            "month_cost": found.month_cost,
            "forecast_cost": found.expected_cost,
            "forecast_low_cost": found.low_cost,
            "forecast_high_cost": found.high_cost,
            "covered_h": found.covered_ms / HOUR_MS,
            "basis": found.basis,
            "budget_cost": budget,
            "spent_ratio": float(found.month_cost / budget) if budget else None,
        })  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA)

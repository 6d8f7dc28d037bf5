"""Who would pay what: the same lines charged under other policies, or at another price."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import polars as pl

from goodput_billing.statement import window
from goodput_billing.statement.amounts.charges import IDLE_POLICIES, Policy
from goodput_billing.statement.amounts.rows import PRICE

KEYS = ["cluster", "account", "is_account"]
MILLIONTH = Decimal("0.000001")


def by_idle_policy(days: Sequence[tuple[pl.DataFrame, Policy]]) -> pl.DataFrame:
    """Return cluster, account, is_account and what each would pay: a column `<policy>_cost` each.

    days: the lines of each day (`window.lines_of`) and its policy. All columns have one sum, to
    the cent: a policy redistributes cost and does not change the total.
    """
    return _beside(
        {
            f"{idle}_cost": [(lines, replace(policy, idle=idle)) for lines, policy in days]
            for idle in IDLE_POLICIES
        }
    )


def at_price(
    days: Sequence[tuple[pl.DataFrame, Policy]], model: str | None, price_per_gpu_h: Decimal
) -> pl.DataFrame:
    """Return cluster, account, is_account, now_cost, new_cost and difference_cost.

    model: whose list price it is, of held and idle time alike; None: of every model. Factors stay.
    """
    return _beside(
        {
            "now_cost": list(days),
            "new_cost": [
                (_repriced(lines, model, price_per_gpu_h), policy) for lines, policy in days
            ],
        }
    ).with_columns((pl.col("new_cost") - pl.col("now_cost")).alias("difference_cost"))


def _repriced(lines: pl.DataFrame, model: str | None, price_per_gpu_h: Decimal) -> pl.DataFrame:
    is_meant = pl.lit(True) if model is None else pl.col("gpu_model") == model
    listed = pl.lit(price_per_gpu_h, PRICE)
    charged = pl.Series(
        "charged",
        [
            (price_per_gpu_h * (Decimal(1) if factor is None else factor)).quantize(MILLIONTH)
            for factor in lines["factor"].to_list()
        ],
        PRICE,
    )
    return lines.with_columns(
        pl.when(is_meant)
        .then(listed)
        .otherwise("list_price_per_gpu_h")
        .alias("list_price_per_gpu_h"),
        pl.when(is_meant).then(charged).otherwise("price_per_gpu_h").alias("price_per_gpu_h"),
    )


def _beside(columns: dict[str, list[tuple[pl.DataFrame, Policy]]]) -> pl.DataFrame:
    """Return what each account pays under each, the most now first."""
    found: pl.DataFrame | None = None
    for name, days in columns.items():
        paid = window.added_up([window.computed_of(lines, policy) for lines, policy in days])
        column = paid.select(*KEYS, pl.col("total_cost").alias(name))
        found = column if found is None else found.join(column, on=KEYS, how="full", coalesce=True)
    assert found is not None  # noqa: S101 -- there are columns
    amounts = pl.selectors.ends_with("_cost")
    first = next(iter(columns))
    return found.with_columns(amounts.fill_null(0)).sort(
        "is_account", first, "cluster", "account", descending=[True, True, False, False]
    )

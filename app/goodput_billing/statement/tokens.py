"""Tokens of the accounts of a statement, as they are known now: no closed amount depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from goodput_billing.statement.summary import NOBODYS

if TYPE_CHECKING:
    from goodput_billing.statement.days import Day
    from goodput_queries.storage.store import Store

COLUMNS = ("account_tokens", "account_tokens_per_cost", "account_tokens_per_j")
_MEASURES = ("tokens", "tokens_per_cost", "tokens_per_j")


def with_tokens(rows: pl.DataFrame, store: Store, day: Day) -> pl.DataFrame:
    """Return a day's rows with three columns about the tokens of the account of each, in all lines.

    account_tokens: of training steps that were not lost; null: no run of the account reports any.
    account_tokens_per_cost, account_tokens_per_j: for the cost of all time allocated to these runs
    and for the energy of its GPUs (`marts.tokens_by_account`); null: not known.
    """
    found = store.read("select * from marts.tokens_by_account", scope=day.scope)
    of_account = found.select(
        pl.lit(value=True).alias("is_account"),
        "cluster",
        "team",
        *(pl.col(name).cast(pl.Float64).alias(f"account_{name}") for name in _MEASURES),
    ).with_columns(pl.col("account_tokens").cast(pl.Int64))
    return (
        rows.with_columns((~pl.col("line").is_in(list(NOBODYS))).alias("is_account"))
        .join(
            of_account,
            on=("is_account", "cluster", "team"),
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        .drop("is_account")
    )

"""Tokens of the accounts of a statement, as they are known now: no closed amount depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from goodput_billing.statement.amounts.summary import NOBODYS

if TYPE_CHECKING:
    from goodput_billing.statement.days import Day
    from goodput_queries.database import Store

_TRAINED = {
    "tokens": pl.Int64,
    "tokens_per_cost": pl.Float64,
    "tokens_per_j": pl.Float64,
}
_SERVED = {
    "input_tokens": pl.Int64,
    "output_tokens": pl.Int64,
    **{
        f"{amount}_per_m_{kind}tokens": pl.Float64
        for amount in ("cost", "joules")
        for kind in ("", "input_", "output_")
    },
}
COLUMNS = tuple(f"account_{name}" for name in _TRAINED)
SERVED_COLUMNS = tuple(f"account_served_{name}" for name in _SERVED)
_KEYS = ("is_account", "cluster", "team")


def with_tokens(rows: pl.DataFrame, store: Store, day: Day) -> pl.DataFrame:
    """Return a day's rows with columns about the tokens of the account of each, in all its lines.

    account_tokens: of training steps that were not lost; null: no run of the account reports any.
    account_tokens_per_cost, account_tokens_per_j: for the cost of all time allocated to these runs
    and for the energy of its GPUs (`marts.tokens_by_account`); null: not known.
    account_served_input_tokens, account_served_output_tokens and the others of SERVED_COLUMNS: of
    the account's serving engines (`marts.serving_tokens_by_account`); null: not known, or none.
    """
    trained = store.read("select * from marts.tokens_by_account", scope=day.scope)
    # most sites serve nothing, and planning the views would take longer than what it finds
    is_served = store.read("select count(*) > 0 from intermediate.int_serving_gpus").item()
    served = (
        store.read("select * from marts.serving_tokens_by_account", scope=day.scope)
        if is_served
        else pl.DataFrame(schema={"cluster": pl.String(), "team": pl.String(), **_SERVED})
    )
    found = rows.with_columns((~pl.col("line").is_in(list(NOBODYS))).alias("is_account"))
    for of_account, measures, prefix in (
        (trained, _TRAINED, "account_"), (served, _SERVED, "account_served_")
    ):  # fmt: skip
        named = of_account.select(
            pl.lit(value=True).alias("is_account"),
            "cluster",
            "team",
            *(pl.col(name).cast(kind).alias(prefix + name) for name, kind in measures.items()),
        )
        found = found.join(named, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
    return found.drop("is_account")

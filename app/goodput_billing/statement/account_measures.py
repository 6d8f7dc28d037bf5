"""Tokens and executing idle of accounts, as known now: no closed amount depends on them."""

import polars as pl

from goodput_billing.statement.amounts.summary import NOBODYS
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
_IDLE = {"executing_idle_ms": pl.Int64, "memory_read_ms": pl.Int64}
TOKEN_COLUMNS = tuple(f"account_{name}" for name in _TRAINED)
IDLE_COLUMNS = tuple(f"account_{name}" for name in _IDLE)
SERVED_COLUMNS = tuple(f"account_served_{name}" for name in _SERVED)
COLUMNS = (*TOKEN_COLUMNS, *SERVED_COLUMNS, *IDLE_COLUMNS)
_KEYS = ("is_account", "cluster", "team")


def with_account_measures(rows: pl.DataFrame, store: Store, day: Day) -> pl.DataFrame:
    """Return a day's rows with columns about the account of each, the same in all its lines.

    account_tokens: of training steps that were not lost; null: no run of the account reports any.
    account_tokens_per_cost, account_tokens_per_j: for the cost of all time allocated to these runs
    and for the energy of its GPUs (`marts.tokens_by_account`); null: not known.
    account_served_input_tokens, account_served_output_tokens and the others of SERVED_COLUMNS: of
    the account's serving engines (`marts.serving_tokens_by_account`); null: not known, or none.
    account_executing_idle_ms of account_memory_read_ms: allocated time in which a program was
    loaded and nothing ran, of that with readings of memory (`marts.executing_idle`); null: none.
    """
    trained = store.read("select * from marts.tokens_by_account", scope=day.scope, is_kept=True)
    # most sites serve nothing, and planning the views would take longer than what it finds
    is_served = store.read("select count(*) > 0 from intermediate.int_serving_gpus").item()
    served = (
        store.read("select * from marts.serving_tokens_by_account", scope=day.scope, is_kept=True)
        if is_served
        else pl.DataFrame(schema={"cluster": pl.String(), "team": pl.String(), **_SERVED})
    )
    idle = store.read(
        """select cluster, team, sum(idle_ms)::bigint as executing_idle_ms,
            sum(held_ms)::bigint as memory_read_ms
        from marts.executing_idle group by all""",
        scope=day.scope,
        is_kept=True,
    )
    found = rows.with_columns((~pl.col("line").is_in(list(NOBODYS))).alias("is_account"))
    for of_account, measures, prefix in (
        (trained, _TRAINED, "account_"),
        (served, _SERVED, "account_served_"),
        (idle, _IDLE, "account_"),
    ):
        named = of_account.select(
            pl.lit(value=True).alias("is_account"),
            "cluster",
            "team",
            *(pl.col(name).cast(kind).alias(prefix + name) for name, kind in measures.items()),
        )
        found = found.join(named, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
    return found.drop("is_account")

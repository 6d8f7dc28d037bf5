"""Carbon of the lines of a statement, as it is known now: no closed amount depends on it."""

import polars as pl

from goodput_billing.statement.amounts.charges import MJ_PER_KWH
from goodput_billing.statement.days import Day
from goodput_queries.database import Store

KEYS = ("line", "cluster", "team", "user_name", "run_key", "partition", "qos", "gpu_model",
        "mig_profile")  # fmt: skip
COLUMNS = ("energy_kwh", "carbon_kg", "carbon_known_ratio")


def with_carbon(rows: pl.DataFrame, store: Store, day: Day) -> pl.DataFrame:
    """Return a day's rows with three columns about energy and carbon.

    energy_kwh: at the node's meter, or else of the GPUs' counters; null: neither is known.
    carbon_kg: CO2 equivalent of the part in hours with an intensity; null: no such hour.
    carbon_known_ratio: that part of the energy.
    """
    found = store.read("select * from marts.statement_carbon", scope=day.scope, is_kept=True)
    used_mj = pl.coalesce("wall_mj", "energy_mj")  # the GPUs' own is in the meter's
    share = used_mj / pl.when(pl.col("used_mj") != 0).then("used_mj")
    return (
        rows.join(found, on=KEYS, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(
            (used_mj / MJ_PER_KWH).round(6).alias("energy_kwh"),
            (pl.col("carbon_kg") * share).round(6).alias("carbon_kg"),
            (pl.col("known_mj") / pl.col("used_mj")).fill_nan(None).alias("carbon_known_ratio"),
        )
        .select(*rows.columns, *COLUMNS)
    )

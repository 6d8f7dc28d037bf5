"""The ledger in nine groups, of which one can be open: a first look has nine bars, not thirty."""

from __future__ import annotations

import polars as pl

from goodput_app.dashboard.data.marts import read

USEFUL = "useful"


def groups() -> pl.DataFrame:
    """Return the group of each category: category, ledger_group, label, colour."""
    return read("select * from reference.ledger_groups")


def of_categories(ledger: pl.DataFrame, known: pl.DataFrame) -> dict[str, str]:
    """Return the group of each category of a ledger; what counts as goodput is useful.

    ledger: marts.ledger_by_category; known: `groups()`.
    """
    found = dict(known.select("category", "ledger_group").rows())
    counted = ledger.filter(pl.col("kind") == "goodput")["category"].to_list()
    return found | dict.fromkeys(counted, USEFUL)


def grouped(ledger: pl.DataFrame, known: pl.DataFrame, opened: str | None) -> pl.DataFrame:
    """Return the ledger with its categories summed up to groups, but for those of the open one.

    A group stands in the column `category`, its parts in `definition`; the sum is that of the
    ledger. ledger: marts.ledger_by_category.
    """
    of = of_categories(ledger, known)
    looks = known.unique("ledger_group").select(
        "ledger_group", pl.col("label").alias("group_label"), pl.col("colour").alias("group_colour")
    )
    rows = ledger.with_columns(
        pl.col("category").replace_strict(of, default=None).alias("ledger_group")
    ).join(looks, on="ledger_group", how="left")
    is_open = pl.col("ledger_group").eq_missing(pl.lit(opened or "none"))
    used = pl.col("gpu_ms") > 0
    summed = (
        rows.filter(~is_open)
        .group_by("ledger_group", maintain_order=True)
        .agg(
            pl.col("group_label").first().alias("label"),
            pl.col("group_colour").first().alias("colour"),
            pl.col("group", "kind").first(),
            pl.col("label").filter(used).str.join(", ").alias("definition"),
            pl.col("gpu_ms").sum(),
            pl.when(pl.col("cost").count() > 0).then(pl.col("cost").sum()).alias("cost"),
        )
        .rename({"ledger_group": "category"})
    )
    columns = summed.columns
    return pl.concat([rows.filter(is_open).select(columns), summed], how="vertical_relaxed")


def over_time(frame: pl.DataFrame, of: dict[str, str], opened: str | None) -> pl.DataFrame:
    """Return marts.ledger_over_time by group, but for the categories of the open one."""
    named = {category: category if group == opened else group for category, group in of.items()}
    return (
        frame.with_columns(pl.col("category").replace(named))
        .group_by("bucket_at", "category", maintain_order=True)
        .agg(pl.col("gpu_ms").sum())
    )

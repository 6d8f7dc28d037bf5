"""Times of records in the hour that comes twice when clocks go back: which of the two is meant."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from goodput_ingest.formats.timestamps import repeated, seconds

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

TWICE = "comes twice"


def settled(rows: pl.DataFrame, texts: pl.DataFrame, zone: ZoneInfo | None) -> pl.DataFrame:
    """Return the rows with repeated local times settled, and `is_time_ambiguous`.

    Start plus the elapsed and suspended time is End, and nothing starts before it is submitted.
    Start or End that neither settles is the later or the earlier one, so that what is held
    certainly was; the row is ambiguous. Submit and Eligible are the earlier one: they hold no GPU.

    texts: the times of the rows as printed.
    """
    rows = rows.with_columns(is_time_ambiguous=pl.lit(value=False))
    are_twice = [
        name for name in texts.columns
        if rows[f"{name} problem"].str.contains(TWICE, literal=True).any()
    ]  # fmt: skip
    if zone is None or not are_twice:
        return rows
    rows = _with_both(rows, texts, zone).with_columns(
        Submit="Submit earlier", Eligible="Eligible earlier"
    )
    fits = {pair: _fits(*pair) for pair in product(("earlier", "later"), repeat=2)}
    for place, (name, certain, other) in enumerate(
        (("Start", "later", "earlier"), ("End", "earlier", "later"))
    ):
        can = {
            choice: pl.any_horizontal(fits[pair] for pair in fits if pair[place] == choice)
            for choice in ("earlier", "later")
        }
        is_open = (pl.col(f"{name} earlier") != pl.col(f"{name} later")).fill_null(value=False)
        rows = rows.with_columns(
            pl.when(is_open & can[other] & ~can[certain])
            .then(f"{name} {other}")
            .otherwise(f"{name} {certain}")
            .alias(name),
            (is_open & (can["earlier"] == can["later"])).alias(f"{name} open"),
        )
    is_ambiguous = pl.col("Start open") | pl.col("End open")
    # both in the repeated hour: as long as the record says, from the earlier one on
    return rows.with_columns(
        is_time_ambiguous=is_ambiguous,
        Start=pl.when(is_ambiguous & (pl.col("End") < pl.col("Start")))
        .then("Start earlier")
        .otherwise("Start"),
    )


def _with_both(rows: pl.DataFrame, texts: pl.DataFrame, zone: ZoneInfo) -> pl.DataFrame:
    """Return the rows with `<name> earlier` and `<name> later` of each time; mostly they are equal.

    That a time comes twice is no problem then.
    """
    for name in texts.columns:
        earlier, later = repeated(texts[name], zone)
        rows = rows.with_columns(
            pl.coalesce(earlier, pl.col(name)).alias(f"{name} earlier"),
            pl.coalesce(later, pl.col(name)).alias(f"{name} later"),
            pl.when(earlier.is_null()).then(f"{name} problem").alias(f"{name} problem"),
        )
    return rows


def _fits(start: str, end: str) -> pl.Expr:
    """Say whether a start and an end are as far apart as the record says, after the submission."""
    elapsed_s = pl.coalesce(
        pl.col("ElapsedRaw").cast(pl.Int64, strict=False), seconds(pl.col("Elapsed"))
    )
    length = pl.duration(seconds=elapsed_s + seconds(pl.col("Suspended")).fill_null(0))
    is_as_long = pl.col(f"End {end}") - pl.col(f"Start {start}") == length
    is_after = pl.col(f"Start {start}") >= pl.col("Submit")
    return is_as_long.fill_null(value=True) & is_after.fill_null(value=True)


def unsettled(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the stored rows that stay ambiguous, with a `problem` that says what helps."""
    found = rows.filter(pl.col("is_time_ambiguous") & pl.col("problem").is_null())
    return found.with_columns(
        problem=pl.lit(
            "slurm: Start or End lies in the hour that comes twice (clocks go back), and ElapsedRaw"
            " does not settle which: its GPU time is not placed."
            " Ask sacct again with SLURM_TIME_FORMAT=%s."
        )
    )

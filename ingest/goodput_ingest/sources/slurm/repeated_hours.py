"""Times of records in the hour that comes twice when clocks go back: which of the two is meant."""

from __future__ import annotations

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
    for name in texts.columns:
        earlier, later = repeated(texts[name], zone)
        at = pl.col(name)
        rows = rows.with_columns(
            pl.coalesce(earlier, at).alias(f"{name} earlier"),
            pl.coalesce(later, at).alias(f"{name} later"),
            pl.when(earlier.is_null()).then(f"{name} problem").alias(f"{name} problem"),
        )
    rows = rows.with_columns(Submit="Submit earlier", Eligible="Eligible earlier")
    length = pl.duration(
        seconds=pl.coalesce(
            pl.col("ElapsedRaw").cast(pl.Int64, strict=False), seconds(pl.col("Elapsed"))
        )
        + seconds(pl.col("Suspended")).fill_null(0)
    )
    pairs = [(start, end) for start in ("earlier", "later") for end in ("earlier", "later")]
    fits = {
        pair: (
            (pl.col(f"End {pair[1]}") - pl.col(f"Start {pair[0]}") == length) | length.is_null()
        ).fill_null(value=True)
        & (pl.col(f"Start {pair[0]}") >= pl.col("Submit")).fill_null(value=True)
        for pair in pairs
    }
    for name, place in (("Start", 0), ("End", 1)):
        can = {
            choice: pl.any_horizontal(fits[pair] for pair in pairs if pair[place] == choice)
            for choice in ("earlier", "later")
        }
        is_open = (pl.col(f"{name} earlier") != pl.col(f"{name} later")).fill_null(value=False)
        certain, other = ("later", "earlier") if name == "Start" else ("earlier", "later")
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

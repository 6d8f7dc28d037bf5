"""Times of records in the hour that comes twice when clocks go back: which of the two is meant."""

from datetime import datetime
from itertools import product
from zoneinfo import ZoneInfo

import polars as pl

from goodput_ingest.formats.timestamps import instants, repeated, seconds

TWICE = "comes twice"
ASK_AGAIN = "Ask again with SLURM_TIME_FORMAT=%s"


def settled(rows: pl.DataFrame, texts: pl.DataFrame, zone: ZoneInfo | None) -> pl.DataFrame:
    """Return the rows with repeated local times settled, and `is_time_ambiguous`.

    Start plus the elapsed and suspended time is End, and nothing starts or ends before it is
    submitted.
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
    """Say whether both are as far apart as the record says, and after the submission."""
    elapsed_s = pl.coalesce(
        pl.col("ElapsedRaw").cast(pl.Int64, strict=False), seconds(pl.col("Elapsed"))
    )
    length = pl.duration(seconds=elapsed_s + seconds(pl.col("Suspended")).fill_null(0))
    is_as_long = pl.col(f"End {end}") - pl.col(f"Start {start}") == length
    submitted = pl.col("Submit")
    is_after = (pl.col(f"Start {start}") >= submitted) & (pl.col(f"End {end}") >= submitted)
    return is_as_long.fill_null(value=True) & is_after.fill_null(value=True)


def intervals(
    texts: pl.DataFrame, lengths: pl.Series, zone: ZoneInfo
) -> dict[int, tuple[datetime, datetime]]:
    """Return start and end of the rows in which a repeated local time is settled by their length.

    texts: start and end as printed; lengths: seconds, null where not printed
    """
    (start, ends), found = texts.columns, {}
    both = [
        [instants(texts[name], zone)[0], *repeated(texts[name], zone)] for name in (start, ends)
    ]
    are_twice = pl.any_horizontal(*(pl.Series(one[1].is_not_null()) for one in both))
    for row in texts.select(are_twice.arg_true())[:, 0] if texts.height else ():
        choices = [[one[row] for one in of if one[row] is not None] for of in both]
        fits = [
            (begin, end) for begin, end in product(*choices)
            if (end - begin).total_seconds() == lengths[row]
        ]  # fmt: skip
        if len(fits) == 1:
            found[row] = fits[0]
    return found


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

"""Texts of times and durations as schedulers and inventories print them, to UTC and to seconds."""

from zoneinfo import ZoneInfo

import polars as pl
from polars import selectors

from goodput_ingest.formats.json_text.json_lines import EPOCH, LATEST
from goodput_ingest.formats.parsed import INSTANT
from goodput_queries.errors import IngestError

# Polars panics where it writes a moment beyond the year 262,142
_FAR = pl.lit(2**62).cast(INSTANT)
PRINTABLE = selectors.datetime("us").clip(pl.lit(-(2**62)).cast(INSTANT), _FAR)
UNSET = ("", "0", "Unknown", "None", "NONE", "N/A", "n/a", "(null)", "INVALID", "4294967294")
EPOCH_CERTAIN_S = (1, 4_294_967_293)  # what is above or 0 may mean that no time was set
EPOCH_MAX_S = 253_402_300_799  # the end of the year 9999
_EPOCH = r"^[0-9]{1,12}$"
_ISO = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:(Z|z)|([+-])([0-9]{2}):?([0-9]{2}))?$"
)
_CLOCK = r"^(?:([0-9]{1,6})-)?(?:([0-9]{1,7}):)?([0-9]{1,7}):([0-9]{1,7})(?:\.[0-9]+)?$"


class ZoneNeededError(IngestError):
    """A time without an offset was met and no zone was given."""


def instants(
    texts: pl.Series, zone: ZoneInfo | None, *, is_local_wrong: bool = False
) -> tuple[pl.Series, pl.Series]:
    """Return naive UTC instants (null: not set) and, for each text that is none, what is wrong.

    Epoch seconds, ISO with offset, ISO without offset in `zone`; local times that a change of
    clocks makes ambiguous or impossible are wrong. Without `zone` all local times are wrong, or
    the first one raises ZoneNeededError.
    """
    name = texts.name
    epoch_s = texts.cast(pl.String).cast(pl.Int64, strict=False)
    if epoch_s.null_count() == 0 and epoch_s.is_between(*EPOCH_CERTAIN_S).all():  # the usual case
        at = pl.from_epoch(epoch_s, time_unit="s").cast(INSTANT)
        return at, pl.Series("problem", [None], pl.String).new_from_index(0, at.len())
    lines = pl.DataFrame({"text": texts.cast(pl.String).str.strip_chars()}).with_columns(
        pl.col("text").is_null().or_(pl.col("text").is_in(UNSET)).alias("unset"),
        pl.col("text").str.contains(_EPOCH).fill_null(value=False).alias("epoch"),
        pl.col("text").cast(pl.Int64, strict=False).alias("epoch_s"),
    )
    lines = lines.with_columns(
        pl.when(pl.col("epoch") & ~pl.col("unset") & (pl.col("epoch_s") <= EPOCH_MAX_S))
        .then(pl.from_epoch(pl.col("epoch_s").clip(0, EPOCH_MAX_S), time_unit="s").cast(INSTANT))
        .alias("at")
    )
    if lines.select((pl.col("unset") | pl.col("at").is_not_null()).all()).item():
        return lines["at"].rename(name), pl.Series("problem", [None] * lines.height, pl.String)
    return _with_iso(lines, zone, name, is_local_wrong=is_local_wrong)


def _with_iso(
    lines: pl.DataFrame, zone: ZoneInfo | None, name: str, *, is_local_wrong: bool
) -> tuple[pl.Series, pl.Series]:
    groups = pl.col("text").str.extract_groups(_ISO).struct
    field = {
        key: groups.field(str(i))
        for i, key in enumerate(("date", "time", "fraction", "z", "sign", "h", "m"), start=1)
    }
    fraction_us = field["fraction"].fill_null("0").str.pad_end(9, "0").cast(pl.Int64) // 1_000
    lines = lines.with_columns(
        (
            pl.concat_str(field["date"], field["time"], separator=" ").str.to_datetime(
                "%Y-%m-%d %H:%M:%S", strict=False, time_unit="us"
            )
            + pl.duration(microseconds=fraction_us)
        ).alias("clock"),
        _offset_s(field).alias("offset_s"),
    ).with_columns(
        pl.coalesce(
            "at",
            pl.col("clock") - pl.duration(seconds=pl.col("offset_s")),
        ).alias("at"),
        (pl.col("clock").is_not_null() & pl.col("offset_s").is_null()).alias("local"),
    )
    twice, never, zoneless = (pl.lit(value=False) for _ in range(3))
    if zone is None and is_local_wrong:
        zoneless = pl.col("local")
    elif lines["local"].any():
        if zone is None:
            example = lines.filter("local")["text"][0]
            raise ZoneNeededError(
                f"time {example} carries no offset from UTC. Name its time zone with --timezone "
                "(such as Europe/Berlin), or write the file again with SLURM_TIME_FORMAT=%s."
            )
        local = pl.when("local").then(pl.col("clock"))
        lines = lines.with_columns(
            local.dt.replace_time_zone(zone.key, ambiguous=choice, non_existent="null")
            .dt.convert_time_zone("UTC")
            .dt.replace_time_zone(None)
            .alias(choice)
            for choice in ("earliest", "latest")
        )
        never = pl.col("local") & pl.col("earliest").is_null()
        twice = pl.col("local") & (pl.col("earliest") != pl.col("latest")).fill_null(value=False)
        lines = lines.with_columns(
            pl.when(pl.col("local") & ~twice).then("earliest").otherwise("at").alias("at")
        )
    lines = lines.with_columns(
        _problem(twice, never, zoneless, zone).alias("problem")
    ).with_columns(pl.when(pl.col("problem").is_null()).then("at").alias("at"))
    return lines["at"].rename(name), lines["problem"]


def repeated(texts: pl.Series, zone: ZoneInfo) -> tuple[pl.Series, pl.Series]:
    """Return the earlier and the later instant of local times that come twice; others are null."""
    clock = (
        texts.cast(pl.String)
        .str.strip_chars()
        .str.replace("T", " ", literal=True)
        .str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
    )
    earlier, later = (
        clock.dt.replace_time_zone(zone.key, ambiguous=choice, non_existent="null")
        .dt.convert_time_zone("UTC")
        .dt.replace_time_zone(None)
        .cast(INSTANT)
        for choice in ("earliest", "latest")
    )
    is_twice = (earlier != later).fill_null(value=False)
    none = pl.Series([None], dtype=INSTANT)
    return earlier.zip_with(is_twice, none), later.zip_with(is_twice, none)


def _offset_s(field: dict[str, pl.Expr]) -> pl.Expr:
    """Return how far the clock that a text names is ahead of UTC; null where it names none."""
    return (
        pl.when(field["z"].is_not_null())
        .then(0)
        .otherwise(
            (
                field["h"].cast(pl.Int64, strict=False) * 3_600
                + field["m"].cast(pl.Int64, strict=False) * 60
            )
            * pl.when(field["sign"] == "-").then(-1).otherwise(1)
        )
    )


def _problem(twice: pl.Expr, never: pl.Expr, zoneless: pl.Expr, zone: ZoneInfo | None) -> pl.Expr:
    """Return why a text is no time that can be used; null where it is one."""
    where = "" if zone is None else zone.key
    return (
        pl.when(twice)
        .then(pl.format("local time {} comes twice in {} (clocks go back)", "text", pl.lit(where)))
        .when(never)
        .then(pl.format("local time {} does not exist in {}", "text", pl.lit(where)))
        .when(zoneless)
        .then(pl.format("time {} has no offset; write {}Z or name --timezone", "text", "text"))
        .when(~pl.col("at").is_between(EPOCH, LATEST, closed="left"))
        .then(pl.format("time {} is not between 1970 and 2199", pl.col("text").str.head(40)))
        .when(~pl.col("unset") & pl.col("at").is_null())
        .then(pl.format("'{}' is not a time", pl.col("text").str.head(40)))
    )


def seconds(text: pl.Expr) -> pl.Expr:
    """Return a duration in seconds: a plain number of them, or `[D-][HH:]MM:SS`; else null."""
    groups = text.str.extract_groups(_CLOCK).struct
    part = [groups.field(str(i)).cast(pl.Int64, strict=False) for i in range(1, 5)]
    clock_s = part[0].fill_null(0) * 86_400 + part[1].fill_null(0) * 3_600 + part[2] * 60 + part[3]
    return pl.coalesce(text.cast(pl.Int64, strict=False), clock_s)

"""Retention of a lake: whole days of readings, requests and collectives go."""

from datetime import UTC, date, datetime, timedelta
from typing import Final

import polars as pl

from goodput_lake.tables import delta
from goodput_lake.tables.arrange import DAY, NO_DAY
from goodput_lake.tables.delta import delta_errors, deltalake
from goodput_lake.tables.lake import Lake
from goodput_lake.upkeep import TRIES, files_of
from goodput_queries.errors import StoreError, TooMuchDroppedError
from goodput_queries.evidence.retention import OF_HOSTS, OF_READINGS, SHARE_MAX, Retention

READINGS: Final = (
    *(name.removeprefix("raw.") for name in OF_READINGS),
    *("node_samples", "serving_requests"),
)
CONDITIONS: Final = {"node_samples": OF_HOSTS}  # as in a database: readings of power stay
SCHEMA: Final = {"table": pl.String, "rows": pl.Int64, "kept_from": pl.Date}


def drop_old_days(
    lake: Lake, retention: Retention, *, is_confirmed: bool = False, now: datetime | None = None
) -> pl.DataFrame:
    """Drop the days that are older than configured; return table, rows and first day kept.

    Days count back from the latest day with readings, or the clock where that is earlier. Files
    go with the next compaction, once no read can need them.

    Raises TooMuchDroppedError, and drops nothing, where several days with more than a tenth of a
    table would go and is_confirmed is not set.
    """
    today = (now or datetime.now(UTC)).date()
    latest = min(today, _last_day(lake, "gpu_samples") or today)
    kept = {name: _first_kept(latest, retention.samples_days) for name in READINGS}
    kept["collectives"] = _first_kept(latest, retention.collectives_days)
    wanted = {name: day for name in lake.tables() if (day := kept.get(name)) is not None}
    if not is_confirmed:
        for name, day in wanted.items():
            _refuse_much(lake, name, day)
    rows = [(name, _drop(lake, name, day), day) for name, day in wanted.items()]
    return pl.DataFrame([row for row in rows if row[1]], schema=SCHEMA, orient="row")


def _first_kept(latest: date, days: int | None) -> date | None:
    return None if days is None else latest - timedelta(days=days - 1)


def _days(lake: Lake, table: str) -> pl.DataFrame:
    """Return the days of a table with their rows; without rows that have no time."""
    files = files_of(lake, table).group_by(pl.col(f"partition.{DAY}").alias("day"))
    of_days = files.agg(pl.col("num_records").sum().alias("rows"))
    return of_days.filter(pl.col("day") > date.fromisoformat(NO_DAY))


def _last_day(lake: Lake, table: str) -> date | None:
    return _days(lake, table)["day"].max()  # type: ignore[return-value]


def _refuse_much(lake: Lake, table: str, kept_from: date) -> None:
    """Raise TooMuchDroppedError for over a tenth of a table, unless it is one day."""
    if table in CONDITIONS:  # part of the days stays, and they are counted each time
        return
    days = _days(lake, table)
    old = days.filter(pl.col("day") < kept_from)
    rows, of_all = int(old["rows"].sum()), int(days["rows"].sum())
    if old.height > 1 and rows > SHARE_MAX * of_all:
        raise TooMuchDroppedError(
            f"{rows:,} of {of_all:,} rows of {table} ({rows / of_all:.0%}) are older than "
            "[retention] keeps, more than a tenth: nothing was dropped. If that is right, run "
            "`goodput lake prune --yes`."
        )


def _drop(lake: Lake, table: str, kept_from: date) -> int:
    """Drop the days of a table before one; return the number of rows."""
    found = delta.opened(lake.url_of(table), lake.storage_options)
    if found is None:
        return 0
    condition = f"{DAY} < '{kept_from}' and {DAY} > '{NO_DAY}'"
    if table in CONDITIONS:
        condition += f" and ({CONDITIONS[table]})"
    try:
        done = found.delete(
            condition,
            commit_properties=deltalake.CommitProperties(max_commit_retries=TRIES),
        )
    except delta_errors.CommitFailedError as error:
        raise StoreError(
            f"{lake.url_of(table)}: another process changes this table now; prune it later."
        ) from error
    except delta.FAILED as error:
        raise StoreError(
            f"{lake.url_of(table)}: cannot be pruned: {delta.first_line(error)}"
        ) from error
    return int(done.get("num_deleted_rows") or 0)

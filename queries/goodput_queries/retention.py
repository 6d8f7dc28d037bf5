"""Dropping evidence by age: readings, collectives and segments by day; the hourly ledger stays.

Hours whose readings are gone cannot be built again. Their hourly ledger and energy go to archives,
where every build finds them, and no later evidence changes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from goodput_queries.errors import StoreError, UnbuiltError

if TYPE_CHECKING:
    import duckdb

    from goodput_queries.store import LocalStore

DAY_MS = 86_400_000
SCHEMA = {"table_name": pl.String, "rows": pl.Int64, "kept_from_ms": pl.Int64}
OF_READINGS = ("raw.gpu_samples", "raw.gpu_samples_other", "raw.gpu_processes")
ARCHIVES = {
    "raw.ledger_archive": "marts.ledger_hourly",
    "raw.energy_archive": "marts.statement_energy_hourly",
}
STAGES_OF_READINGS = ("intermediate.int_gpu_activity", "intermediate.int_slowed_readings")


@dataclass(frozen=True)
class Retention:
    """How many days back from the newest evidence rows are kept; None keeps all.

    samples_days: readings of GPUs. collectives_days: single NCCL operations. segments_days: the
    ledger at millisecond resolution, at least as long as the readings it is made of.
    """

    samples_days: int | None = None
    collectives_days: int | None = None
    segments_days: int | None = None

    def __post_init__(self) -> None:
        """Refuse ages that would drop what has just come, or segments before their readings."""
        for name in ("samples_days", "collectives_days", "segments_days"):
            days = getattr(self, name)
            if days is not None and days < 1:
                raise StoreError(f"retention: {name} is {days}; keep one day at least.")
        if self.segments_days is not None and (
            self.samples_days is None or self.segments_days < self.samples_days
        ):
            raise StoreError(
                "retention: segments can be made again from readings, so keep segments_days at "
                "least as long as samples_days, and set both."
            )


def drop_old(store: LocalStore, retention: Retention) -> pl.DataFrame:
    """Drop what is older than configured; return table_name, rows and kept_from_ms, one row each.

    Raises UnbuiltError where loads are waiting for a build: their hours would be frozen unbuilt.
    """
    with store.writing() as cursor:
        newest = _scalar(cursor, "select max(as_of_ms) from intermediate.int_clusters")
        if newest is None:
            return pl.DataFrame(schema=SCHEMA)
        if _scalar(cursor, "select max(sequence) from raw.ingested") != _scalar(
            cursor, "select max(sequence) from intermediate.built"
        ):
            raise UnbuiltError(
                "there is evidence that no build has seen: run `goodput build` first."
            )
        dropped: list[tuple[str, int, int]] = []
        if (cut := _cut(cursor, "gpu_samples", newest, retention.samples_days)) is not None:
            _archive(cursor, cut)
            dropped += [
                (table, _delete(cursor, table, "ts < from_ms($1)", cut), cut)
                for table in OF_READINGS
            ]
            for table in (*STAGES_OF_READINGS, "marts.unheld_hourly"):
                _delete(cursor, table, "hour_ms < $1", cut)
            _note(cursor, "gpu_samples", cut)
        days = retention.segments_days
        if (cut := _cut(cursor, "ledger_segments", newest, days)) is not None:
            rows = _delete(cursor, "marts.ledger_segments", "hour_ms < $1", cut)
            dropped.append(("marts.ledger_segments", rows, cut))
            _note(cursor, "ledger_segments", cut)
        days = retention.collectives_days
        if (cut := _cut(cursor, "collectives", newest, days)) is not None:
            rows = _delete(cursor, "raw.collectives", "dumped_at < from_ms($1)", cut)
            dropped.append(("raw.collectives", rows, cut))
            _note(cursor, "collectives", cut)
    return pl.DataFrame(dropped, schema=SCHEMA, orient="row")


def kept_from_ms(cursor: duckdb.DuckDBPyConnection, table: str) -> int:
    """Return from when on rows of a table are kept, 0 where none were dropped."""
    found = cursor.execute(
        "select kept_from_ms from raw.kept_from where table_name = $1", [table]
    ).fetchall()
    return int(found[0][0]) if found else 0


def _cut(
    cursor: duckdb.DuckDBPyConnection, table: str, newest_ms: int, days: int | None
) -> int | None:
    """Return the start of the first day that is kept, None where nothing is to be dropped."""
    if days is None:
        return None
    cut = (newest_ms // DAY_MS - days + 1) * DAY_MS
    return cut if cut > kept_from_ms(cursor, table) else None


def _archive(cursor: duckdb.DuckDBPyConnection, cut: int) -> None:
    for archive, stage in ARCHIVES.items():
        cursor.execute(
            f"insert into {archive} select * from {stage} where hour_ms >= $1 and hour_ms < $2",
            [kept_from_ms(cursor, "gpu_samples"), cut],
        )


def _delete(cursor: duckdb.DuckDBPyConnection, table: str, where: str, cut: int) -> int:
    return int(cursor.execute(f"delete from {table} where {where}", [cut]).fetchall()[0][0])


def _note(cursor: duckdb.DuckDBPyConnection, table: str, cut: int) -> None:
    cursor.execute("delete from raw.kept_from where table_name = $1", [table])
    cursor.execute("insert into raw.kept_from values ($1, $2)", [table, cut])


def _scalar(cursor: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    value = cursor.execute(sql).fetchall()[0][0]
    return None if value is None else int(value)

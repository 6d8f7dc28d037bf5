"""Upkeep of a lake: small files become large ones, and what nobody reads any more goes."""

import os
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

import polars as pl

from goodput_lake import publish
from goodput_lake.tables import delta
from goodput_lake.tables.archive import TABLE, archive_loads
from goodput_lake.tables.arrange import CLUSTER, DAY, NO_DAY, lake_table
from goodput_lake.tables.delta import delta_errors, deltalake
from goodput_lake.tables.lake import Lake
from goodput_queries.errors import StoreError

MIB: Final = 1024 * 1024
FILE_BYTES: Final = 128 * MIB
FILE_BYTES_TODAY: Final = 16 * MIB  # a day that still grows is not rewritten as a whole each time
SMALL_BYTES: Final = FILE_BYTES // 8
TRIES: Final = 40  # of a commit, while others load
FILES: Final = {
    "path": pl.String,
    "size_bytes": pl.Int64,
    "num_records": pl.Int64,
    f"partition.{CLUSTER}": pl.String,
    f"partition.{DAY}": pl.Date,
}


@dataclass(frozen=True)
class Compaction:
    """How to compact. kept_h: hours for which removed files stay. memory_bytes: of one table."""

    kept_h: int = delta.REMOVED_KEPT_H
    at_once: int = field(default_factory=lambda: os.cpu_count() or 4)
    memory_bytes: int = 1024 * MIB


def status(lake: Lake) -> pl.DataFrame:
    """Return a row for each table and cluster: days, rows, files, and how many are small."""
    found = [files_of(lake, table).with_columns(table=pl.lit(table)) for table in lake.tables()]
    files = pl.concat(found) if found else pl.DataFrame(schema={**FILES, "table": pl.String})
    day = pl.col(f"partition.{DAY}")
    day = pl.when(day > date.fromisoformat(NO_DAY)).then(day)
    return (
        files.group_by("table", pl.col(f"partition.{CLUSTER}").alias("cluster"))
        .agg(
            day.min().alias("first_day"),
            day.max().alias("last_day"),
            pl.col("num_records").sum().alias("rows"),
            pl.len().cast(pl.Int64).alias("files"),
            (pl.col("size_bytes") < SMALL_BYTES).sum().cast(pl.Int64).alias("small_files"),
            pl.col("size_bytes").sum().alias("bytes"),
        )
        .sort("table", "cluster")
    )


def mergeable_files(lake: Lake, *, today: date | None = None) -> tuple[int, int]:
    """Return how many files a compaction would merge, about, and of how many."""
    day, size = pl.col(f"partition.{DAY}"), pl.col("size_bytes")
    target = pl.when(day < (today or datetime.now(UTC).date())).then(FILE_BYTES)
    small = size < target.otherwise(FILE_BYTES_TODAY)
    folder = pl.col("path").str.replace(r"/[^/]*$", "")
    count = merged = 0
    for table in lake.tables():
        files = files_of(lake, table)
        count += files.height
        merged += files.filter(small & (small.sum().over(folder) > 1)).height
    return merged, count


def compact(
    lake: Lake, options: Compaction | None = None, *, today: date | None = None
) -> pl.DataFrame:
    """Merge the small files of each table, remove files that no version needs; a row a table.

    Collectors may load meanwhile. Raises StoreError where another process compacts or prunes.
    """
    options = options or Compaction()
    today = today or datetime.now(UTC).date()
    archive_loads(lake)
    done = []
    whole = (TABLE, *(one.path for one in publish.TABLES.values()))  # tables whose days are over
    for name in (*lake.tables(), *whole):
        url = f"{lake.url}/{name}" if name in whole else lake.url_of(name)
        table = delta.opened(url, lake.storage_options)
        if table is None:
            continue
        try:
            version, before = table.version(), len(table.file_uris())
            if name in whole:
                _merge(table, options, FILE_BYTES, None)
            else:
                _merge(table, options, FILE_BYTES, [(DAY, "<", today.isoformat())])
                _merge(table, options, FILE_BYTES_TODAY, [(DAY, ">=", today.isoformat())])
            after = len(table.file_uris())
            removed = _clean_up(table, options.kept_h)
            if table.version() != version:
                table.create_checkpoint()
            table.cleanup_metadata()  # before a checkpoint, and older than Delta's 30 days
        except delta_errors.CommitFailedError as error:
            raise StoreError(
                f"{url}: another process changes this table now; compact it later."
            ) from error
        except delta.FAILED as error:
            raise StoreError(f"{url}: cannot be compacted: {delta.first_line(error)}") from error
        done.append((name, before, after, removed))
    schema = ["table", "files_before", "files", "files_removed"]
    return pl.DataFrame(done, schema=schema, orient="row")


def _merge(table: deltalake.DeltaTable, options: Compaction, size_bytes: int, where: Any) -> None:
    table.optimize.compact(
        partition_filters=where,
        target_size=size_bytes,
        max_concurrent_tasks=options.at_once,
        max_spill_size=options.memory_bytes,
        writer_properties=delta.WRITER,
        commit_properties=deltalake.CommitProperties(max_commit_retries=TRIES),
    )


def _clean_up(table: deltalake.DeltaTable, kept_h: int) -> int:
    """Remove files of earlier versions and of killed writers; return how many."""

    def vacuum(*, dry_run: bool) -> list[str]:
        return table.vacuum(kept_h, dry_run=dry_run, enforce_retention_duration=False, full=True)

    return len(vacuum(dry_run=False)) if vacuum(dry_run=True) else 0  # which is a commit


def files_of(lake: Lake, table: str) -> pl.DataFrame:
    """Return the files of a raw table."""
    lake_table(table)
    found = delta.opened(lake.url_of(table), lake.storage_options)
    if found is None:
        return pl.DataFrame(schema=FILES)
    files = pl.DataFrame(found.get_add_actions(flatten=True))
    return files.select(pl.col(name).cast(kind) for name, kind in FILES.items())

"""Arranges the rows of a batch as a table of the lake stores them: columns, partitions, order."""

import zlib
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Final

import duckdb
import polars as pl
import pyarrow as pa

from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.errors import RowsRefusedError, StoreError
from goodput_queries.evidence.load import SEQUENCE

DIGEST: Final = "load_digest"  # the batch that wrote a row; a database numbers its loads itself
CLUSTER, DAY, BUCKET = "lake_cluster", "lake_day", "lake_bucket"
NO_DAY: Final = "1970-01-01"  # of tables without a time
BUCKETED: Final = {  # tables of readings and the column whose hash is the bucket
    "gpu_samples": "gpu_uuid",
    "gpu_samples_other": "gpu_uuid",
    "gpu_processes": "gpu_uuid",
    "node_samples": "node",
    "link_samples": "node",
}


@dataclass(frozen=True)
class LakeTable:
    """A raw table in the lake. columns: of the raw table, with the types of the database."""

    model: Model
    columns: dict[str, str]
    required: tuple[str, ...]

    @property
    def time(self) -> str | None:
        """Return the column of the time of a row."""
        return self.model.time

    @property
    def partitions(self) -> list[str]:
        """Return the columns whose values are names of folders."""
        return [CLUSTER, DAY, *([BUCKET] if self.model.name in BUCKETED else [])]

    @property
    def order(self) -> list[str]:
        """Return the columns by which rows are sorted: the series, then the time."""
        series = [name for name in self.model.grain if name != self.time]
        return [*self.partitions, *series, *([self.time] if self.time else [])]

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the table in the lake; only the database refuses nulls."""
        with duckdb.connect() as connection:
            empty = ", ".join(f"null::{kind} as {name}" for name, kind in self._all().items())
            return connection.sql(f"select {empty} limit 0").to_arrow_table().schema

    def _all(self) -> dict[str, str]:
        own = {DIGEST: "varchar", CLUSTER: "varchar", DAY: "date", BUCKET: "integer"}
        return self.columns | {n: k for n, k in own.items() if n in (DIGEST, *self.partitions)}


@cache
def lake_table(name: str) -> LakeTable:
    """Return a raw table by its name; raises StoreError where there is none."""
    model = models.of_layer("raw").get(name)
    if model is None:
        raise StoreError(f"there is no raw table {name!r}; see `goodput show`.")
    with duckdb.connect() as connection:
        connection.execute(f"create schema raw; {model.sql}")
        found = connection.execute(
            f'select column_name, column_type, "null" from (describe {model.qualified_name})'
        ).fetchall()
    columns = {name: kind for name, kind, _ in found if name != SEQUENCE}
    required = (name for name, _, null in found if null == "NO" and name != SEQUENCE)
    return LakeTable(model, columns, tuple(required))


def bucket_of(key: str | None, buckets: int) -> int:
    """Return the bucket of a GPU or a node; it must stay the same in all versions."""
    return zlib.crc32((key or "").encode()) % buckets


def arranged(
    table: LakeTable, rows: pl.DataFrame, *, digest: str, cluster: str, buckets: int
) -> pa.Table:
    """Return rows as the lake stores them; raises RowsRefusedError where they do not fit.

    cluster: of rows without one.
    """
    name = table.model.qualified_name
    if unknown := rows.columns - table.columns.keys():
        raise StoreError(f"{name} has no column {min(unknown)!r}")
    key = BUCKETED.get(table.model.name)
    if key is not None:
        keys = rows[key].cast(pl.String).unique()
        numbers = [bucket_of(one, buckets) for one in keys]
        column = rows[key].cast(pl.String).replace_strict(keys, numbers, return_dtype=pl.Int32)
        rows = rows.with_columns(column.alias(BUCKET))
    with duckdb.connect() as connection:
        connection.register("incoming", rows.to_arrow(compat_level=pl.CompatLevel.newest()))
        try:
            _refuse_nulls(connection, table, rows.columns)
            return connection.sql(
                f"select {_values(table, rows.columns)} from incoming order by {_order(table)}",
                params={"digest": digest, "cluster": cluster or None},
            ).to_arrow_table()
        except duckdb.Error as error:
            raise RowsRefusedError(f"its rows do not fit {name}: {error}") from error


def window(table: LakeTable, rows: pl.DataFrame) -> tuple[datetime | None, datetime | None]:
    """Return the first and the last time in the rows, or two nulls."""
    if table.time is None or rows.is_empty():
        return None, None
    return rows[table.time].min(), rows[table.time].max()  # type: ignore[return-value]


def _values(table: LakeTable, given: list[str]) -> str:
    values = [
        f"{name if name in given else 'null'}::{kind} as {name}"
        for name, kind in table.columns.items()
    ]
    of_row = "nullif(cluster::varchar, '')" if "cluster" in given else "null"
    values.append(f"$digest::varchar as {DIGEST}")
    values.append(f"coalesce({of_row}, $cluster)::varchar as {CLUSTER}")
    day = f"{table.time}::date" if table.time in given else "null"
    values.append(f"coalesce({day}, date '{NO_DAY}') as {DAY}")
    if BUCKET in given:
        values.append(BUCKET)
    return ", ".join(values)


def _order(table: LakeTable) -> str:
    return ", ".join(table.order)


def _refuse_nulls(
    connection: duckdb.DuckDBPyConnection, table: LakeTable, given: list[str]
) -> None:
    """Raise RowsRefusedError where a column is null that a database refuses."""
    missing = " or ".join(f"{name} is null" for name in table.required if name in given) or "false"
    absent = [name for name in table.required if name not in given]
    found = connection.sql(f"select count(*) from incoming where {missing}").fetchall()[0][0]
    if found or (absent and connection.sql("select 1 from incoming limit 1").fetchall()):
        raise RowsRefusedError(
            f"its rows do not fit {table.model.qualified_name}: one of "
            f"{', '.join(table.required)} is missing."
        )

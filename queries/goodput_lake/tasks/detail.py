"""Detail from the lake: a select over readings that the database does not have."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import duckdb
import polars as pl

from goodput_lake.tables.arrange import bucket_of
from goodput_lake.tables.lake import Lake
from goodput_lake.tables.loads import EPOCH
from goodput_lake.tasks.database import PartDatabase
from goodput_lake.tasks.distribute import lake_part, loads_of, snapshot
from goodput_lake.tasks.task import Task, needs_of
from goodput_queries.errors import QueryError
from goodput_queries.ledger_build.dirty_hours import HOUR_MS


def read_readings(
    cursor: duckdb.DuckDBPyConnection,
    lake: Lake,
    sql: str,
    parameters: Sequence[Any],
    bounds_ms: tuple[int, int],
    keys: Sequence[str] | None,
    variables: Mapping[str, Any],
) -> pl.DataFrame:
    """Return the rows of a select that reads readings of some GPUs or nodes and a time.

    keys: the GPUs or nodes; None: all. What it reads besides comes from the database.
    Raises QueryError where the select is refused, StoreError where the lake does not answer.
    """
    start, end = (EPOCH + timedelta(milliseconds=ms) for ms in bounds_ms)
    buckets = set(range(lake.buckets))
    if keys is not None:
        buckets = {bucket_of(key, lake.buckets) for key in keys}
    selects = {"main.detail": sql}
    needs = needs_of(tuple(selects), tuple(selects.values()))
    tables = [name.split(".")[1] for name in needs.readings]
    task = Task(
        selects=selects,
        first=bounds_ms[0] // HOUR_MS,
        last=bounds_ms[1] // HOUR_MS + 1,
        variables=variables,
        inputs={name: cursor.sql(f"from {name}").to_arrow_table() for name in needs.inputs},
        readings=tuple(
            lake_part(table, snapshot(lake, table), (start, end), tuple(sorted(buckets)))
            for table in tables
            if lake.version(table) is not None
        ),
        loads=loads_of(cursor),
        lake_url=lake.url,
        lake_options=lake.storage_options,
    )
    database = PartDatabase()
    try:
        found: pl.DataFrame = database.read(task, parameters)
    except duckdb.Error as error:
        raise QueryError(f"the lake refused the query: {error}") from error
    finally:
        database.close()
    return found

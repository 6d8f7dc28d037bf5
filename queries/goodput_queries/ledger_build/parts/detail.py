"""Detail from the lake: a select over readings that the database does not have."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl

from goodput_queries.errors import QueryError
from goodput_queries.lake.arrange import bucket_of
from goodput_queries.lake.loads import EPOCH
from goodput_queries.ledger_build.node_hours import HOUR_MS
from goodput_queries.ledger_build.parts.database import PartDatabase
from goodput_queries.ledger_build.parts.distribute import lake_part, loads_of, snapshot
from goodput_queries.ledger_build.parts.task import LakePart, Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goodput_queries.lake.lake import Lake

TABLE = "gpu_samples"


def read_readings(
    cursor: duckdb.DuckDBPyConnection,
    lake: Lake,
    sql: str,
    parameters: Sequence[Any],
    bounds_ms: tuple[int, int],
    gpus: Sequence[str],
) -> pl.DataFrame:
    """Return the rows of a select that reads readings of some GPUs and a time.

    Raises QueryError where the select is refused, StoreError where the lake does not answer.
    """
    start, end = (EPOCH + timedelta(milliseconds=ms) for ms in bounds_ms)
    buckets = tuple(sorted({bucket_of(gpu, lake.buckets) for gpu in gpus}))
    readings: tuple[LakePart, ...] = ()
    if lake.version(TABLE) is not None:
        readings = (lake_part(TABLE, snapshot(lake, TABLE), (start, end), buckets),)
    task = Task(
        selects={"main.detail": sql},
        first=bounds_ms[0] // HOUR_MS,
        last=bounds_ms[1] // HOUR_MS + 1,
        variables={},
        inputs={},
        readings=readings,
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

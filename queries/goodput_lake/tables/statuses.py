"""Statuses of the live sources of a lake: a small file each, which its collector overwrites.

A poll every few seconds must not commit to a table each time: a status has no history.
"""

import hashlib
import json

import duckdb
import polars as pl

from goodput_lake.tables.lake import Lake
from goodput_queries.catalog import models
from goodput_queries.errors import StoreError

TABLE = "source_status"
FOLDER = "status"
CLUSTER = "cluster"


def write(lake: Lake, rows: pl.DataFrame) -> None:
    """Write statuses of sources of the lake's cluster; each replaces the one before."""
    for row in rows.to_dicts():
        values = {name: None if value is None else str(value) for name, value in row.items()}
        key = f"{lake.cluster}\0{row['source']}\0{row['origin']}"
        name = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        lake.objects.write(f"{FOLDER}/{name}.json", json.dumps({CLUSTER: lake.cluster, **values}))


def read(lake: Lake) -> pl.DataFrame:
    """Return the statuses of all clusters: the columns of `state.source_status`, and `cluster`."""
    model = models.of_layer("state")[TABLE]
    with duckdb.connect() as connection:
        connection.execute(f"create schema state; {model.sql}")
        connection.execute(f"alter table {model.qualified_name} add column {CLUSTER} varchar")
        columns = connection.table(model.qualified_name).columns
        paths = [f"{FOLDER}/{name}" for name in lake.objects.names(FOLDER)]
        for path, text in zip(paths, lake.objects.texts(paths), strict=True):
            try:
                given = json.loads(text or "")
                connection.execute(
                    f"insert into {model.qualified_name} values "
                    f"({', '.join(f'${name}' for name in columns)})",
                    {name: given.get(name) for name in columns},
                )
            except (ValueError, AttributeError, duckdb.Error) as error:
                raise StoreError(
                    f"{lake.url}/{path}: this is not a status of a source ({error})."
                ) from error
        found: pl.DataFrame = connection.table(model.qualified_name).pl()
    return found

"""What tasks take from the database of the build, and give back to it."""

from typing import Any, Final

import duckdb
import pyarrow as pa

VARIABLES: Final = ("reading_margin_ms", "built_sequence", "merged_sequence")


def insert(cursor: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> int:
    """Insert the rows of a part; return how many there are."""
    cursor.register("given", rows)
    cursor.execute(f"insert into {name} by name from given")
    cursor.unregister("given")
    return int(rows.num_rows)


def columns(cursor: duckdb.DuckDBPyConnection, name: str) -> set[str]:
    """Return the columns of a table."""
    return {column for column, *_ in cursor.execute(f"describe {name}").fetchall()}


def variables(cursor: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return the constants of the build."""
    values = ", ".join(f"getvariable('{name}')" for name in VARIABLES)
    return dict(zip(VARIABLES, cursor.execute(f"select {values}").fetchall()[0], strict=True))

"""Putting the headers of the SQL files into the database, so that any client can show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from goodput_queries.catalog import Model


def describe(cursor: duckdb.DuckDBPyConnection, model: Model) -> None:
    """Comment a table or view and its columns with what its file says of them."""
    kind = "table" if model.is_stored else "view"
    _comment(cursor, f"{kind} {model.qualified_name}", model.description)
    columns = {
        name
        for (name,) in cursor.execute(
            "select column_name from duckdb_columns() where schema_name = $1 and table_name = $2",
            [model.layer, model.name],
        ).fetchall()
    }
    for column, meaning in model.columns.items():
        if column in columns:  # a header may speak of several columns in one line
            _comment(cursor, f"column {model.qualified_name}.{column}", meaning)


def _comment(cursor: duckdb.DuckDBPyConnection, target: str, text: str) -> None:
    quoted = text.replace("'", "''")
    cursor.execute(f"comment on {target} is '{quoted}'")

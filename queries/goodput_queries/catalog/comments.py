"""Writes the headers of the SQL files as comments into the database, for any client."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from goodput_queries.catalog.models import Model


def describe(cursor: duckdb.DuckDBPyConnection, model: Model) -> None:
    """Comment a table or view and its columns with the header of its file."""
    kind = "table" if model.is_stored else "view"
    _comment(cursor, f"{kind} {model.qualified_name}", model.description)
    cursor.execute(f"from {model.qualified_name} limit 0")
    columns = {column[0] for column in cursor.description}
    for column, meaning in model.columns.items():
        if column in columns:  # a header line may describe several columns
            _comment(cursor, f"column {model.qualified_name}.{column}", meaning)


def _comment(cursor: duckdb.DuckDBPyConnection, target: str, text: str) -> None:
    quoted = text.replace("'", "''")
    cursor.execute(f"comment on {target} is '{quoted}'")

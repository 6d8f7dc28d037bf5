"""Putting the headers of the SQL files into the database, so that any client can show them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from goodput_queries.catalog import Model


def describe(cursor: duckdb.DuckDBPyConnection, model: Model) -> None:
    """Comment a table or view and its columns with what its file says of them."""
    kind = "table" if model.is_stored else "view"
    _comment(cursor, f"{kind} {model.qualified_name}", model.description)
    for column, meaning in model.columns.items():
        # a header may speak of several columns in one line
        with contextlib.suppress(duckdb.CatalogException, duckdb.BinderException):
            _comment(cursor, f"column {model.qualified_name}.{column}", meaning)


def _comment(cursor: duckdb.DuckDBPyConnection, target: str, text: str) -> None:
    quoted = text.replace("'", "''")
    cursor.execute(f"comment on {target} is '{quoted}'")

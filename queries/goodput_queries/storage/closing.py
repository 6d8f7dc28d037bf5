"""Closing a database that threads still read: DuckDB refuses that while a query runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterable

WAIT_S = 0.02
TRIES = 500  # 10 s


def close(root: duckdb.DuckDBPyConnection, cursors: Iterable[duckdb.DuckDBPyConnection]) -> None:
    """Close a connection; queries of its cursors are interrupted and their callers get an error."""
    for _ in range(TRIES):
        try:
            root.close()
        except duckdb.Error as error:
            if "busy" not in str(error):
                raise
        else:
            return
        for cursor in list(cursors):
            cursor.interrupt()
        time.sleep(WAIT_S)
    root.close()

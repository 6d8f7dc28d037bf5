"""Databases to read into: ours with its tables, which take time to make, and bare ones."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import duckdb

from goodput_queries.store import LocalStore


def opened(path: Path) -> LocalStore:
    """Return the database at `path`, an empty one with all its tables where there is none."""
    if not path.exists():
        path.write_bytes(_empty())
    return LocalStore(path)


def bare(path: Path) -> duckdb.DuckDBPyConnection:
    """Return a new DuckDB file for an alternative, which is to print no progress bars."""
    connection = duckdb.connect(path)
    connection.execute("set enable_progress_bar = false")
    return connection


@cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"
        LocalStore(path).close()
        return path.read_bytes()

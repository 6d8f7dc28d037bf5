"""Databases to read into: their tables take longer to make than a tiny work does."""

import tempfile
from functools import cache
from pathlib import Path

from goodput_queries.database import LocalStore


def opened(path):
    """Return the database at `path`, an empty one with all its tables where there is none."""
    if not path.exists():
        path.write_bytes(_empty())
    return LocalStore(path)


@cache
def _empty():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"
        LocalStore(path).close()
        return path.read_bytes()

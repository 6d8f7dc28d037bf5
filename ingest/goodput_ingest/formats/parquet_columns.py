"""Parquet files: their columns, for sources that recognise themselves by them."""

from pathlib import Path

import polars as pl

MAGIC = b"PAR1"


def names(path: Path, head: bytes) -> set[str]:
    """Return the names of the columns; none where `head` is not of a Parquet file or it is cut."""
    if not head.startswith(MAGIC):
        return set()
    try:
        return set(pl.read_parquet_schema(path))
    except (OSError, UnicodeError, pl.exceptions.PolarsError):
        return set()

"""Parquet files: their columns, for sources that recognise themselves by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"PAR1"


def names(path: Path, head: bytes) -> set[str]:
    """Return the names of the columns; none where `head` is not of a Parquet file or it is cut."""
    if not head.startswith(MAGIC):
        return set()
    try:
        return set(pl.read_parquet_schema(path))
    except (OSError, UnicodeError, pl.exceptions.PolarsError):
        return set()

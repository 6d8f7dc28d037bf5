"""The ledger of GPU time as a DuckDB database, and its Python API: `goodput_queries.open(...)`.

Importing this package imports neither DuckDB nor Polars; `open` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goodput_queries.api import Database

__all__ = ["open"]


def open(path_or_url: str | Path, *, token: str | None = None) -> Database:  # noqa: A001 -- as gzip.open
    """Open a database for reading; see `goodput_queries.api.Database`.

    path_or_url: a DuckDB file of Goodput, also one that a running `goodput serve` has open, or the
    URL of a server (`http://127.0.0.1:8501`).
    token: for a URL, else `$GOODPUT_TOKEN`: the `token` of `DATABASE.server.json`, which the
    server writes next to its database at each start.

    Raises StoreError where the database does not exist or cannot be reached.
    """
    from goodput_queries.api import Database  # noqa: PLC0415 -- imports DuckDB and Polars

    return Database.open(path_or_url, token=token)

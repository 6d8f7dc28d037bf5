"""`goodput audit`: who did what."""

import contextlib
from pathlib import Path

import click
import polars as pl

from goodput_app.cli.options import database_option, limit_option, output_options, say
from goodput_queries.audit import KEPT_DAYS, entries
from goodput_queries.database import open_store
from goodput_queries.errors import StoreError


@click.command()
@limit_option
@database_option
@output_options
def audit(*, limit: int | None, db: str) -> pl.DataFrame:
    """List who signed in, changed prices, changed findings.

    It also lists downloads of statements and retired sources. Latest first; kept for 90 days.
    """
    if not Path(db).exists():
        raise StoreError(f"{db}: there is no such database.")
    with contextlib.closing(open_store(db)) as store:
        found = entries(store, limit)
    if found.is_empty():
        say(f"Nothing is recorded in the last {KEPT_DAYS} days.")
    return found

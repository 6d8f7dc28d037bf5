"""`goodput prune`: drop old evidence."""

import click
import polars as pl
from msgspec import structs

from goodput_app.cli.options import database_option, output_options, say
from goodput_app.settings import settings
from goodput_queries.database import LocalStore, open_store
from goodput_queries.errors import StoreError
from goodput_queries.evidence.retention import Retention, drop_old

confirm_option = click.option(
    "--yes", "is_confirmed", is_flag=True, help="Confirm dropping more than a tenth of a table."
)


@click.command()
@database_option
@confirm_option
@output_options
def prune(*, db: str, is_confirmed: bool) -> pl.DataFrame:
    """Drop evidence older than [retention] in goodput.toml."""
    store = open_store(db)
    try:
        if not isinstance(store, LocalStore):
            raise StoreError(f"{db}: the server that has it open drops old evidence itself.")
        store.build()
        ages = Retention(**structs.asdict(settings().retention))
        dropped = drop_old(store, ages, is_confirmed=is_confirmed)
    finally:
        store.close()
    return said(dropped, is_set=ages != Retention())


def said(dropped: pl.DataFrame, *, is_set: bool) -> pl.DataFrame:
    """Return what was dropped; where that is nothing, a sentence says why."""
    if dropped.is_empty() and is_set:
        say("Nothing is that old.")
    elif dropped.is_empty():
        say("[retention] in goodput.toml is not set: everything is retained.")
    return dropped

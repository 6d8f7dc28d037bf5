"""`goodput forget`: undo the ingest of a file or folder."""

import click
import polars as pl

from goodput_app.cli.database import existing
from goodput_app.cli.options import database_option, output_options, say
from goodput_queries.database import LocalStore
from goodput_queries.errors import StoreError
from goodput_queries.evidence.forgetting import forget as drop


@click.command()
@click.argument("origins", nargs=-1, required=True, metavar="ORIGIN...")
@database_option
@output_options
def forget(*, origins: tuple[str, ...], db: str) -> pl.DataFrame:
    """Undo the ingest of a file or folder.

    ORIGIN: a path as it was given to `goodput ingest`, or the URL of a live source.
    """
    with existing(db) as store:
        if not isinstance(store, LocalStore):
            raise StoreError(f"{db}: a server has it open; stop it, forget, and start it again.")
        found = drop(store, origins)
    again = found.filter(found["is_to_read_again"])["origin"].to_list()
    if again:
        say(
            f"{len(again)} other files contain some of the removed rows: ingest them again with "
            f"`goodput ingest`, starting with {again[0]}."
        )
    return found

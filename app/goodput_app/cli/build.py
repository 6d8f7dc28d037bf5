"""`goodput build`: bring the ledger up to date, from the database alone or from a lake."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import click
import polars as pl
from click.core import ParameterSource

from goodput_app.cli.database import chosen_lake, existing, opened, tasks_shown
from goodput_app.cli.options import database_option, lake_option, output_options
from goodput_queries.database import LocalStore, Store, lake_package
from goodput_queries.errors import StoreError

COMMAND_LINE = ParameterSource.COMMANDLINE


@click.command()
@database_option
@lake_option
@click.option("--full", "is_full", is_flag=True, help="Rebuild everything, not only what changed.")
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    help="What computes readings of a lake: this process, or Ray; default: goodput.toml, local.",
)
@click.option(
    "--address",
    metavar="ADDRESS",
    help="Ray cluster, such as auto; default: goodput.toml, workers on this host.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Tasks of a lake at a time; default: goodput.toml, by the number of cores.",
)
@output_options
def build(
    *,
    db: str,
    lake: str | None,
    is_full: bool,
    engine: str | None,
    address: str | None,
    workers: int | None,
) -> pl.DataFrame:
    """Update the ledger with newly ingested data."""
    is_named = click.get_current_context().get_parameter_source("lake") is COMMAND_LINE
    lake = lake if is_named else chosen_lake(lake)
    with existing(db) if lake is None else opened(db) as store:
        given = {"engine": engine, "address": address, "workers": workers}
        chosen = {name: value for name, value in given.items() if value is not None}
        if lake is not None or chosen:
            _prepare(store, db, lake, chosen)
        with tasks_shown() as on_task:
            its_lake = store.lake if isinstance(store, LocalStore) else None
            if its_lake is not None:
                its_lake.on_task = on_task
            done = store.build(is_full=is_full)
        if its_lake is not None:
            its_lake.publish()
        return done


def _prepare(store: Store, db: str, lake: str | None, chosen: Mapping[str, Any]) -> None:
    """Give a database its lake, and its builds the engine of this command."""
    if not isinstance(store, LocalStore):
        raise StoreError(
            f"{db}: a server has it open and builds it; set `engine`, `address` and `workers` "
            "under [lake] in its goodput.toml."
        )
    if lake is not None:
        lake_package().attach(store, lake)
    if store.lake is None:
        raise StoreError(
            f"{store.path}: it is not the database of a lake, which alone has tasks; "
            "add --lake URL."
        )
    store.lake.options = dataclasses.replace(store.lake.options, **chosen)

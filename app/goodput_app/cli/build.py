"""`goodput build`: bring the ledger up to date, from the database alone or from a lake."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from goodput_app.cli.database import chosen_lake, existing, opened
from goodput_app.cli.options import database_option, lake_option, output_options
from goodput_queries.errors import StoreError
from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from goodput_queries.storage.store import Store


@click.command()
@database_option
@lake_option
@click.option("--full", "is_full", is_flag=True, help="Rebuild everything, not only what changed.")
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="What computes the readings of a lake: this process, or workers of Ray.",
)
@click.option(
    "--address",
    metavar="ADDRESS",
    help="Ray cluster, such as auto or ray://HOST:10001; default: workers on this host.",
)
@click.option(
    "--workers", type=click.IntRange(1), help="Tasks at a time; default: by the number of cores."
)
@output_options
def build(
    *,
    db: str,
    lake: str | None,
    is_full: bool,
    engine: str,
    address: str | None,
    workers: int | None,
) -> pl.DataFrame:
    """Update the ledger with newly ingested data."""
    if engine == "local" and address is not None:
        raise click.UsageError("--address is of --engine ray.")
    lake = chosen_lake(lake)
    if lake is None and engine == "local" and workers is None:
        with existing(db) as store:
            return store.build(is_full=is_full)
    with (
        opened(db) if lake is not None else existing(db) as store,
        _ready(store, lake, engine, address, workers),
    ):
        return store.build(is_full=is_full)


@contextlib.contextmanager
def _ready(
    store: Store, lake: str | None, engine: str, address: str | None, workers: int | None
) -> Iterator[None]:
    """Give a database its lake and the engine of this build."""
    if not isinstance(store, LocalStore):
        raise StoreError(
            f"{store.path}: another process has it open and builds it; --lake, --engine and "
            "--workers are for a database that no server has open."
        )
    if lake is not None:
        from goodput_queries.lake.pull import attach  # noqa: PLC0415 -- an extra

        attach(store, lake)
    if store.lake is None:
        raise StoreError(
            f"{store.path}: it is a database of no lake, which alone has tasks for --engine and "
            "--workers; add --lake URL."
        )
    if engine == "local":
        from goodput_queries.ledger_build.parts.engines import InProcess  # noqa: PLC0415

        store.engine = InProcess(workers)
        yield
        return
    from goodput_queries.ledger_build.parts.ray_engine import RayEngine  # noqa: PLC0415 -- an extra

    with contextlib.closing(RayEngine(address, workers=workers)) as store.engine:
        yield

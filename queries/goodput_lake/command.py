"""`goodput lake`: make a lake and keep it; the modules of an extra are imported when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import polars as pl
from msgspec import structs

from goodput_app.cli.database import built
from goodput_app.cli.options import database_option, lake_option, output_options, say
from goodput_app.cli.prune import confirm_option, said
from goodput_app.settings import settings
from goodput_queries.errors import StoreError
from goodput_queries.evidence.retention import Retention

if TYPE_CHECKING:
    from goodput_lake.tables.lake import Lake


@click.group()
def lake() -> None:
    """Make and keep a lake, into which many hosts load."""


@lake.command()
@click.option(
    "--buckets",
    type=click.IntRange(1, 4096),
    help="Partitions of a day of readings, by GPU or node; fixed for the lake. Default: 16.",
)
@lake_option
@output_options
def create(*, buckets: int | None, lake: str | None) -> pl.DataFrame:
    """Create a lake in an empty folder or at a URL, such as s3://bucket/prefix."""
    from goodput_lake.tables.lake import BUCKETS, Lake  # noqa: PLC0415 -- an extra

    made = Lake.create(named(lake), buckets=BUCKETS if buckets is None else buckets)
    return pl.DataFrame({"lake": [made.url], "buckets": [made.buckets]})


@lake.command()
@lake_option
@output_options
def status(*, lake: str | None) -> pl.DataFrame:
    """List tables and clusters with their days, rows and files."""
    from goodput_lake import upkeep  # noqa: PLC0415 -- an extra

    found = upkeep.status(opened(lake))
    if found.is_empty():
        say("Nothing was loaded into it yet.")
    return found


@lake.command()
@lake_option
@output_options
def compact(*, lake: str | None) -> pl.DataFrame:
    """Merge small files; remove those that were replaced a day ago."""
    from goodput_lake import upkeep  # noqa: PLC0415 -- an extra

    return upkeep.compact(opened(lake))


@lake.command()
@confirm_option
@lake_option
@output_options
def prune(*, is_confirmed: bool, lake: str | None) -> pl.DataFrame:
    """Drop days older than [retention] in goodput.toml."""
    from goodput_lake.prune import drop_old_days  # noqa: PLC0415 -- an extra

    ages = Retention(**structs.asdict(settings().retention))
    dropped = drop_old_days(opened(lake), ages, is_confirmed=is_confirmed)
    is_set = ages.samples_days is not None or ages.collectives_days is not None
    return said(dropped, is_set=is_set)


@lake.command()
@database_option
@lake_option
@output_options
def publish(*, db: str, lake: str | None) -> pl.DataFrame:
    """Write closed hours of the ledger into the lake, for other engines."""
    from goodput_lake.publish import publish as write  # noqa: PLC0415 -- an extra

    into = opened(lake)
    with built(db) as store:
        written = write(store, into)
    if written.is_empty():
        say("No closed hour changed.")
    return written


def named(url: str | None) -> str:
    """Return the URL of a lake; raises StoreError where none is named."""
    if url is None:
        raise StoreError("no lake is named: add --lake URL, or `url` under [lake] in goodput.toml.")
    return url


def opened(url: str | None) -> Lake:
    """Open the lake that is named; rows that name no cluster are of that of goodput.toml."""
    from goodput_lake.tables.lake import Lake  # noqa: PLC0415 -- an extra

    return Lake.open(named(url), cluster=settings().lake_cluster)

"""`goodput lake`: make a lake."""

from __future__ import annotations

import click
import polars as pl

from goodput_app.cli.options import lake_option, output_options
from goodput_queries.errors import StoreError


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
    from goodput_queries.lake.lake import BUCKETS, Lake  # noqa: PLC0415 -- an extra

    made = Lake.create(named(lake), buckets=BUCKETS if buckets is None else buckets)
    return pl.DataFrame({"lake": [made.url], "buckets": [made.buckets]})


def named(url: str | None) -> str:
    """Return the URL of a lake; raises StoreError where none is named."""
    if url is None:
        raise StoreError("no lake is named: add --lake URL, or `url` under [lake] in goodput.toml.")
    return url

"""The readings of the generated fleet as wide Parquet.

Ours checks values against sentinels, keeps each key once and the counters that have
no column of their own in it; the alternatives come to the columns as they are.
"""

import contextlib

import duckdb
import polars as pl
from tests.benchmarks.formats import Alternative, Format


def polars_sink_parquet(folder, out):
    """Stream all files into one."""
    pl.scan_parquet(folder / "*.parquet").sink_parquet(out / "samples.parquet")


def duckdb_read_parquet(folder, out):
    """Let the database read the files."""
    with contextlib.closing(duckdb.connect(out / "duckdb.duckdb")) as connection:
        connection.execute(
            "create table samples as select * from read_parquet($1)", [str(folder / "*.parquet")]
        )


WIDE = Format(
    name="wide Parquet of the fleet",
    source="telemetry-parquet",
    unit="M rows",
    per_unit=1e6,
    budget_per_s=1.5e6,
    alternatives=(
        Alternative("Polars sink_parquet (columns)", polars_sink_parquet),
        Alternative("DuckDB read_parquet (columns)", duckdb_read_parquet),
    ),
    full=1_000_000,
    is_a_row_each=True,
)

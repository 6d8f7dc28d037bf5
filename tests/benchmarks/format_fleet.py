"""The generated fleet's own files: readings as wide Parquet, and the events of its jobs.

Ours of the readings checks values against sentinels, keeps each key once and the counters that have
no column of their own in it; the alternatives come to the columns as they are.
"""

from __future__ import annotations

import contextlib
import gzip
import json
from typing import TYPE_CHECKING

import duckdb
import polars as pl
from tests.benchmarks.formats import Alternative, Format

from goodput_ingest.source import ReadOptions

if TYPE_CHECKING:
    from pathlib import Path


def pandas_read_parquet(folder: Path, out: Path) -> None:
    """Read file by file and insert the frames into a table."""
    import pandas as pd  # noqa: PLC0415 -- an alternative, not a dependency

    with contextlib.closing(duckdb.connect(out / "pandas.duckdb")) as connection:
        for number, file in enumerate(sorted(folder.iterdir())):
            connection.register("frame", pd.read_parquet(file))
            verb = "insert into samples" if number else "create table samples as"
            connection.execute(f"{verb} select * from frame")


def polars_sink_parquet(folder: Path, out: Path) -> None:
    """Stream all files into one."""
    pl.scan_parquet(folder / "*.parquet").sink_parquet(out / "samples.parquet")


def duckdb_read_parquet(folder: Path, out: Path) -> None:
    """Let the database read the files."""
    with contextlib.closing(duckdb.connect(out / "duckdb.duckdb")) as connection:
        connection.execute(
            "create table samples as select * from read_parquet($1)", [str(folder / "*.parquet")]
        )


def chdb_merge_tree(folder: Path, out: Path) -> None:
    """Insert the files into a MergeTree table, sorted by GPU and time."""
    from chdb.session import Session  # noqa: PLC0415 -- an alternative, and large

    with contextlib.closing(Session(str(out / "clickhouse"))) as session:
        session.query(
            "create table samples engine = MergeTree order by (gpu_uuid, gpu_instance, ts) "
            f"settings allow_nullable_key = 1 as select * from file('{folder}/*.parquet', Parquet)"
        )


WIDE = Format(
    name="wide Parquet of the fleet",
    source="telemetry-parquet",
    unit="M rows",
    per_unit=1e6,
    budget_per_s=1.5e6,
    alternatives=(
        Alternative("pandas read_parquet (columns)", pandas_read_parquet, ("pandas",)),
        Alternative("Polars sink_parquet (columns)", polars_sink_parquet),
        Alternative("DuckDB read_parquet (columns)", duckdb_read_parquet),
        Alternative("ClickHouse (columns)", chdb_merge_tree, ("chdb",)),
    ),
    full=1_000_000,
    is_a_row_each=True,
)


def json_and_pandas(folder: Path, out: Path) -> None:
    """Parse line by line into a frame."""
    import pandas as pd  # noqa: PLC0415 -- an alternative, not a dependency

    events = []
    for file in sorted(folder.iterdir()):
        with gzip.open(file) as lines:
            events += [json.loads(line) for line in lines]
    pd.DataFrame(events).to_pickle(out / "events.pickle")


def polars_read_ndjson(folder: Path, out: Path) -> None:
    """Read file by file, types guessed from all lines."""
    frames = [pl.read_ndjson(f, infer_schema_length=None) for f in sorted(folder.iterdir())]
    pl.concat(frames, how="diagonal_relaxed").write_parquet(out / "events.parquet")


def duckdb_read_json(folder: Path, out: Path) -> None:
    """Let the database read the files, types guessed."""
    with contextlib.closing(duckdb.connect(out / "duckdb.duckdb")) as connection:
        connection.execute(
            "create table events as select * from "
            "read_json($1, format = 'newline_delimited', union_by_name = true)",
            [str(folder / "*")],
        )


def lines(folder: Path) -> int:
    """Return how many events the files of a folder hold."""
    found = 0
    for path in folder.iterdir():
        with gzip.open(path) as file:
            found += sum(1 for _ in file)
    return found


def job_events(cluster: str) -> Format:
    """Return the format of job events of a cluster."""
    return Format(
        name="job events of the fleet",
        source="job-events",
        unit="k rows",
        per_unit=1e3,
        budget_per_s=None,
        alternatives=(
            Alternative("json and pandas (columns)", json_and_pandas, ("pandas",)),
            Alternative("Polars read_ndjson (columns)", polars_read_ndjson),
            Alternative("DuckDB read_json (columns)", duckdb_read_json),
        ),
        options=ReadOptions(cluster=cluster),
        is_a_row_each=True,
    )

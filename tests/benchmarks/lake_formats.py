"""Delta Lake (deltalake) beside Iceberg (pyiceberg with an SQL catalogue) as the format of a lake.

    pip install deltalake 'pyiceberg[sql-sqlite,pyarrow]' 'moto[server]' flask-cors httpx
    python -m tests.benchmarks.lake_formats --commits 100

The same small batches of readings go into both: partitioned by cluster, day and bucket, one commit
each. Times are CPU seconds of this process. Requests are those that an S3 server gets for the last
of ten commits. See docs/decisions/0143-lake.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from tests.queries.lake.s3_server import BUCKET, requests, s3_server

if TYPE_CHECKING:
    from collections.abc import Callable

GPUS, BUCKETS, METRICS = 1_000, 16, 10
READINGS = 10  # of a GPU in a batch: five minutes at 30 s
DAY = dt.date(2026, 11, 20)
PARTITIONS = ("cluster", "day", "bucket")


class Table(Protocol):
    """A table of a format."""

    def append(self, rows: pa.Table) -> None:
        """Commit rows; tries again where another writer was first."""

    def read(self, day: dt.date, bucket: int | None) -> pa.Table:
        """Return the rows of a day, or of one bucket of it."""

    def compact(self, day: dt.date) -> None:
        """Merge the files of a day."""


class Delta:
    """A Delta table by deltalake."""

    def __init__(self, url: str) -> None:
        from deltalake import DeltaTable, Schema  # noqa: PLC0415

        self.url = url
        schema = Schema.from_arrow(batch(0).schema)
        self.table = DeltaTable.create(url, schema, partition_by=list(PARTITIONS))

    def append(self, rows: pa.Table) -> None:
        """Commit rows."""
        from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415

        write_deltalake(DeltaTable(self.url), rows, mode="append")

    def read(self, day: dt.date, bucket: int | None) -> pa.Table:
        """Return the rows of a day, or of one bucket of it."""
        import pyarrow.dataset as ds  # noqa: PLC0415

        wanted = ds.field("day") == day
        if bucket is not None:
            wanted &= ds.field("bucket") == bucket
        self.table.update_incremental()
        return self.table.to_pyarrow_dataset().to_table(filter=wanted)

    def compact(self, day: dt.date) -> None:
        """Merge the files of a day."""
        self.table.update_incremental()
        self.table.optimize.compact(partition_filters=[("day", "=", str(day))])


class Iceberg:
    """An Iceberg table by pyiceberg; its catalogue is a database that all writers must reach."""

    def __init__(self, url: str) -> None:
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415
        from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415

        folder = tempfile.mkdtemp()
        options = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": url}
        if url.startswith("s3"):
            options["s3.endpoint"] = os.environ["AWS_ENDPOINT_URL"]
        self.catalog = SqlCatalog("lake", **options)
        self.catalog.create_namespace("raw")
        made = self.catalog.create_table("raw.readings", batch(0).schema)
        with made.update_spec() as update:
            for name in PARTITIONS:
                update.add_field(name, IdentityTransform(), name)

    def append(self, rows: pa.Table) -> None:
        """Commit rows."""
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415

        while True:
            try:
                self.catalog.load_table("raw.readings").append(rows)
            except CommitFailedException:
                time.sleep(0.05)
            else:
                return

    def _where(self, day: dt.date, bucket: int | None) -> Any:
        from pyiceberg.expressions import And, EqualTo  # noqa: PLC0415

        wanted: Any = EqualTo("day", day.isoformat())
        return wanted if bucket is None else And(wanted, EqualTo("bucket", bucket))

    def read(self, day: dt.date, bucket: int | None) -> pa.Table:
        """Return the rows of a day, or of one bucket of it."""
        table = self.catalog.load_table("raw.readings")
        return table.scan(row_filter=self._where(day, bucket)).to_arrow()

    def compact(self, day: dt.date) -> None:
        """Rewrite the day: pyiceberg has no compaction of files."""
        table = self.catalog.load_table("raw.readings")
        table.overwrite(self.read(day, None), overwrite_filter=self._where(day, None))


def batch(number: int) -> pa.Table:
    """Return some minutes of readings of a cluster, GPU by GPU."""
    chance = np.random.default_rng(number)
    gpus = np.repeat(np.arange(GPUS), READINGS)
    start = dt.datetime.combine(DAY, dt.time())
    at = start + dt.timedelta(seconds=30 * READINGS * number)
    times = [at + dt.timedelta(seconds=30 * i) for i in range(READINGS)] * GPUS
    columns: dict[str, Any] = {
        "gpu_uuid": pa.array([f"GPU-{gpu:05}" for gpu in gpus]),
        "ts": pa.array(times, pa.timestamp("us")),
        "cluster": pa.array(["west"] * len(gpus)),
        "day": pa.array([moment.date() for moment in times], pa.date32()),
        "bucket": pa.array(gpus % BUCKETS, pa.int32()),
    }
    for metric in range(METRICS):
        columns[f"m{metric}"] = pa.array(np.round(chance.random(len(gpus)), 3))
    return pa.table(columns)


def cpu_s(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(kind: Callable[[str], Table], commits: int) -> dict[str, float]:
    """Return what one format takes."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        table = kind(folder)
        batches = [batch(number) for number in range(commits)]
        each = [cpu_s(lambda rows=rows: table.append(rows)) for rows in batches]
        found["CPU s of one of the first 10 commits"] = sum(each[:10]) / 10
        found["CPU s of one of the last 10 commits"] = sum(each[-10:]) / 10
        found["CPU s of a read of one bucket of a day"] = cpu_s(lambda: table.read(DAY, 3))
        found["CPU s of a read of the day"] = cpu_s(lambda: table.read(DAY, None))
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        found["files"] = len(files)
        of_data = sum(file.stat().st_size for file in files if ".parquet" in file.name)
        found["MB of files with metadata"] = sum(file.stat().st_size for file in files) / 1e6
        found["MB of Parquet"] = of_data / 1e6
        rows = table.read(DAY, None).num_rows
        found["CPU s of the compaction of the day"] = cpu_s(lambda: table.compact(DAY))
        assert table.read(DAY, None).num_rows == rows
        found["CPU s of a read of one bucket after it"] = cpu_s(lambda: table.read(DAY, 3))
        found["CPU s of a read of the day after it"] = cpu_s(lambda: table.read(DAY, None))
        start = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(table.append, [batch(number) for number in range(20)]))
        found["wall s of 20 commits of two writers"] = time.monotonic() - start
        assert table.read(DAY, None).num_rows == rows + 20 * GPUS * READINGS
    return found


def measure_requests(kind: Callable[[str], Table]) -> dict[str, float]:
    """Return what one commit to S3 takes."""
    with s3_server() as environment:
        os.environ.update(environment)
        table = kind(f"s3://{BUCKET}/{kind.__name__}")
        for number in range(9):
            table.append(batch(number))
        before = requests(environment["AWS_ENDPOINT_URL"])
        took_s = cpu_s(lambda: table.append(batch(9)))
        return {
            "S3 requests of the tenth commit": requests(environment["AWS_ENDPOINT_URL"]) - before,
            "its CPU s": took_s,
        }


def main() -> None:
    """Measure both and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, default=100)
    commits = parser.parse_args().commits
    found = {}
    for kind in (Delta, Iceberg):
        kind(tempfile.mkdtemp()).append(batch(0))  # imports
        found[kind] = measure(kind, commits) | measure_requests(kind)
    for name, value in found[Delta].items():
        sys.stdout.write(f"| {name} | {value:,.3f} | {found[Iceberg][name]:,.3f} |\n")


if __name__ == "__main__":
    main()

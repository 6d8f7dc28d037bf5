"""Small batches of made-up clusters, and a lake in a folder."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from goodput_lake.tables.lake import Lake
from goodput_queries.evidence.batch import Batch

START = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- as all moments of the store: naive UTC


@pytest.fixture
def lake(tmp_path):
    return Lake.create(str(tmp_path / "lake"), cluster="west")


def readings(digest, seconds=(0, 30), *, gpus=2, power_w=300.0):
    """Return readings of some GPUs so many seconds after the start, GPU by GPU."""
    found = [("dcgm", f"GPU-{gpu}", "", START + timedelta(seconds=second), power_w)
             for gpu in range(gpus) for second in seconds]  # fmt: skip
    columns = ("source", "gpu_uuid", "gpu_instance", "ts", "power_w")
    rows = pl.DataFrame(found, schema=list(columns), orient="row")
    rows = rows.with_columns(pl.col("ts").cast(pl.Datetime("us")))
    return Batch("gpu_samples", rows, "dcgm", "http://exporter", digest)

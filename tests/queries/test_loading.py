"""Batches into raw tables: what a key, a repeat and a size do."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from goodput_queries.batch import Batch

START = datetime.fromisoformat("2027-01-15T08:00:00")


def samples(n, *, gpus=4, first=0):
    moments = [START + timedelta(seconds=first + i // gpus) for i in range(n)]
    return pl.DataFrame(
        {
            "source": ["s"] * n,
            "gpu_uuid": [f"GPU-{i % gpus}" for i in range(n)],
            "gpu_instance": [""] * n,
            "ts": moments,
            "power_w": [float(i) for i in range(n)],
        }
    ).with_columns(pl.col("ts").cast(pl.Datetime("us")))


def load(store, table, frame, digest):
    return store.load(Batch(table, frame, "s", "origin", digest))


def count(store, table):
    return store.read(f"select count(*) from raw.{table}").item()


@pytest.mark.parametrize("overlap", [0, 1000])
def test_a_large_batch_loses_no_row(store, overlap):
    """DuckDB 2.0.0 drops inserts of 122,880 rows and more into a table made empty by a select."""
    first = load(store, "gpu_samples", samples(10_000), "a")
    second = load(store, "gpu_samples", samples(250_000, first=2500 - overlap), "b")

    assert first.rows_new == 10_000
    assert second.rows_new == 250_000 - 4 * overlap
    assert count(store, "gpu_samples") == 260_000 - 4 * overlap


def test_a_key_that_repeats_in_a_batch_is_loaded_once(store):
    frame = pl.concat([samples(8), samples(8)])

    loaded = load(store, "gpu_samples", frame, "a")

    assert (loaded.rows, loaded.rows_new) == (16, 8)


def test_a_price_that_was_put_back_holds_again(store):
    def rate(price):
        return pl.DataFrame({"source": ["rates"], "usd_per_gpu_h": [Decimal(price)]})

    for digest, price in (("a", "2.00"), ("b", "3.00"), ("a", "2.00")):
        load(store, "rates", rate(price), digest)

    assert store.read("select usd_per_gpu_h from raw.rates").rows() == [(Decimal("2.000000"),)]

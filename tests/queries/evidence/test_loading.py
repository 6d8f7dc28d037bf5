"""Batches into raw tables: what a key, a repeat and a size do."""

import contextlib
import math
from datetime import datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from tests.tables import each

from goodput_queries.database import LocalStore
from goodput_queries.evidence.batch import Batch
from goodput_queries.storage.row_groups import ROW_GROUP

START = datetime.fromisoformat("2027-01-15T08:00:00")


def samples(n, *, gpus=4, first=0):
    moments = [START + timedelta(seconds=first + i // gpus) for i in range(n)]
    columns = {"gpu_uuid": [f"GPU-{i % gpus}" for i in range(n)], "ts": moments}
    columns |= {"power_w": [float(i) for i in range(n)]}
    schema = {"ts": pl.Datetime("us")}
    return pl.DataFrame(columns, schema_overrides=schema).with_columns(
        source=pl.lit("s"), gpu_instance=pl.lit("")
    )


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


def test_a_batch_in_pieces_fills_row_groups(tmp_path):
    sizes = (ROW_GROUP, 1000, ROW_GROUP)
    parts = [samples(size, first=i * ROW_GROUP) for i, size in enumerate(sizes)]
    with contextlib.closing(LocalStore(tmp_path / "g.duckdb")) as store:
        load(store, "gpu_samples", pl.concat(parts, rechunk=False), "a")

        sql = """select max("count") as size from pragma_storage_info('raw.gpu_samples')
            where column_name = 'ts' group by row_group_id order by row_group_id"""
        groups = store.read(sql)

    assert groups["size"].to_list() == [ROW_GROUP, ROW_GROUP, 1000]


def hold(**facts):
    """Return a frame of raw.holds of one row, of a GPU that is not named."""
    nothing = {"slurm_index": None, "end_at": None}
    schema = {"slurm_index": pl.Int32, "submit_at": pl.Datetime("us"), "end_at": pl.Datetime("us")}
    row = {"source": "s", "cluster": "c", "job_id_raw": "1", "submit_at": START, "node": "a"}
    return pl.DataFrame([{**row, **nothing, "method": "pod", **facts}], schema_overrides=schema)


@pytest.mark.parametrize("other", [{"slurm_index": 0}, {"submit_at": START - timedelta(days=400)}])
def test_a_key_that_differs_in_one_column_is_new_and_one_with_nulls_is_known_again(store, other):
    load(store, "holds", hold(), "a")
    assert load(store, "holds", hold(**other), "b").rows_new == 1
    again = load(store, "holds", pl.concat([hold(), hold(**other)]), "c")
    assert (again.rows_new, count(store, "holds")) == (0, 2)


def test_a_row_that_takes_the_place_of_another_is_not_new(store):
    end = START + timedelta(hours=1)
    load(store, "holds", hold(), "a")

    ended = load(store, "holds", pl.concat([hold(end_at=end), hold(node="b")]), "b")

    assert ended.rows_new == 1
    ends = store.read("select node, end_at from raw.holds order by node").rows()
    assert ends == [("a", end), ("b", None)]


def test_a_price_that_was_put_back_holds_again(store):
    def rate(price):
        return pl.DataFrame({"source": ["rates"], "price_per_gpu_h": [Decimal(price)]})

    for digest, price in (("a", "2.00"), ("b", "3.00"), ("a", "2.00")):
        load(store, "rates", rate(price), digest)

    assert store.read("select price_per_gpu_h from raw.rates").rows() == [(Decimal("2.000000"),)]


def valid(minute, **facts):
    """Return a row about a GPU that is valid from a minute on."""
    begin = START + timedelta(minutes=minute)
    return {"source": "s", "gpu_uuid": "GPU-0", "valid_from_at": begin, **facts}


def gpu(minute, **facts):
    return valid(minute, **{"node": "a", "gpu_index": 0, "power_limit_w": 700.0, **facts})


def part(minute, instance, **facts):
    of = {"gpu_instance": instance, "profile": "3g.40gb", "compute_slices": 3}
    return valid(minute, **{**of, **facts})


def valid_from_minutes(store, table, *loads):
    """Load rows, a batch each; return the minutes that stand in the table."""
    for number, rows in enumerate(loads):
        frame = pl.DataFrame(rows, infer_schema_length=None)
        load(store, table, frame, f"{table} {number}")
    moments = store.read(f"select distinct valid_from_at from raw.{table} order by 1").to_series()
    return [(moment - START) / timedelta(minutes=1) for moment in moments]


GONE = gpu(0, valid_to_at=START + timedelta(minutes=3))
ENDED = part(0, "1", valid_to_at=START + timedelta(minutes=3))


# what it shows: table, rows by batch, minutes from which rows stand in the table
@each({
    # as by each collector that starts
    "a GPU that is reported again": ("gpus", [[gpu(0)], [gpu(5)], [gpu(9)]], [0]),
    "a first reading that knows less": (
        "gpus", [[gpu(0)], [gpu(5, power_limit_w=None)], [gpu(9)]], [0]),
    "another node and its way back": ("gpus", [[gpu(0)], [gpu(5, node="b")], [gpu(9)]], [0, 5, 9]),
    "another limit and its way back": (
        "gpus", [[gpu(0)], [gpu(5, power_limit_w=500.0)], [gpu(9)]], [0, 5, 9]),
    "another number and its way back": (
        "gpus", [[gpu(0)], [gpu(5, gpu_index=3)], [gpu(9)]], [0, 5, 9]),
    "a change and its way back in one batch": (
        "gpus", [[gpu(0)], [gpu(5, node="b"), gpu(9)]], [0, 5, 9]),
    "a GPU that was there earlier": ("gpus", [[gpu(5)], [gpu(0)]], [0, 5]),
    "a GPU that was removed comes back": ("gpus", [[GONE], [gpu(5)]], [0, 5]),
    "GPUs of two sources or clusters": (
        "gpus", [[gpu(0)], [gpu(5, cluster="c")], [gpu(9, source="other")]], [0, 5, 9]),
    "a layout that is reported again": (
        "gpu_instances", [[part(0, "1"), part(0, "2")], [part(5, "1"), part(5, "2")]], [0]),
    "a layout that comes back after its end": (
        "gpu_instances", [[part(0, "1")], [ENDED], [part(5, "1")]], [0, 5]),
})  # fmt: skip
def test_only_what_has_changed_is_a_new_row(store, table, loads, minutes):
    assert valid_from_minutes(store, table, *loads) == minutes


@pytest.mark.parametrize("other", [
    [part(5, "1")],
    [part(5, "1"), part(5, "2"), part(5, "9")],
    [part(5, "1"), part(5, "2", profile="2g.20gb")],
])  # fmt: skip
def test_a_layout_that_differs_in_one_part_is_reported_whole(store, other):
    assert valid_from_minutes(store, "gpu_instances", [part(0, "1"), part(0, "2")], other) == [0, 5]
    assert store.read("from raw.gpu_instances").height == 2 + len(other)


@pytest.mark.usefixtures("all_packages")
def test_a_bucket_of_infinity_is_stored_once(store):
    bucket = {"source": "s", "endpoint": "e", "engine": "0", "model": "m", "role": "both"}
    bucket |= {"product": "vllm", "metric": "ttft_s", "ts": START, "le_s": math.inf}
    for n in (3, 99):
        load(store, "serving_histograms", pl.DataFrame([{**bucket, "observations": n}]), f"{n}")

    assert store.read("select observations from raw.serving_histograms").rows() == [(3,)]


@pytest.mark.parametrize(("gpus", "seconds"), [
    ("a" * 20 + "b" * 20, [*range(20), *range(20)]),
    ("b" * 20 + "a" * 20, [*range(20), *range(20)]),
    ("a" * 20, [*range(19), 18]),  # the moment stands still
    ("a" * 20, [*range(19), 3]),  # it goes back to one that was
    ("a" * 20 + "b" * 20 + "a" * 20, [*range(20), *range(20), *range(20)]),
    ("a" * 20 + "b" * 20, [*range(20), *range(19), 3]),
    ("ab" * 20, [n // 4 for n in range(40)]),
])  # fmt: skip
def test_a_key_that_comes_twice_in_a_batch_is_stored_once_in_any_order(store, gpus, seconds):
    ts = [START + timedelta(seconds=s) for s in seconds]
    rows = pl.DataFrame({"source": "x", "gpu_uuid": list(gpus), "gpu_instance": "", "ts": ts})
    rows = rows.with_columns(pl.col("ts").cast(pl.Datetime("us")))

    loaded = load(store, "gpu_samples", rows, "twice")

    assert loaded.rows_new == rows.n_unique()
    assert store.read("select * from raw.gpu_samples").height == rows.n_unique()


def test_texts_of_a_key_may_be_categories_and_moments_of_another_unit(store):
    rows = samples(8).with_columns(pl.col("gpu_uuid").cast(pl.Categorical()))
    load(store, "gpu_samples", rows, "categories")
    others = pl.col("gpu_uuid").cast(pl.String), pl.col("ts").cast(pl.Datetime("ns"))
    again = rows.with_columns(*others)

    assert load(store, "gpu_samples", again, "texts").rows_new == 0

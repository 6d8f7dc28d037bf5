"""The store keeps what was acknowledged, once, and serves many threads."""

import contextlib
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from tests.tables import each
from tests.until import until

from goodput_queries.catalog import models as sql_models
from goodput_queries.database import LocalStore
from goodput_queries.errors import QueryError, StoreError
from goodput_queries.evidence import load
from goodput_queries.evidence.batch import REJECT_CONTENT_MAX_CHARS, Batch, Loaded, Reject
from goodput_queries.scope import Scope


def batch(table, *rows, digest="1", **more):
    frame = pl.DataFrame([{"source": "test", **row} for row in rows], infer_schema_length=None)
    return Batch(table, frame, source="test", origin="file", digest=digest, **more)


def gpu(**columns):
    return {"gpu_uuid": "GPU-1", "node": "n1", **columns}


def sample(minute, **columns):
    at = datetime(2026, 11, 20, 12, minute)  # noqa: DTZ001 -- the database holds naive UTC
    return {"gpu_uuid": "GPU-1", "gpu_instance": "", "ts": at, **columns}


@pytest.mark.parametrize(("table", "rows", "rows_new"), [

    ("gpu_samples", [{**sample(0), "ts": "2026-11-20 12:00:00"}] * 2, 1),  # to be cast
    ("gpus", [gpu(), gpu(gpu_model="H200")], 1),
    ("rejects", [{"origin": "file", "reason": "cut", "content": "a"}] * 2, 1),
])  # fmt: skip
def test_a_key_that_comes_twice_in_a_batch_is_stored_once(store, table, rows, rows_new):
    """Whether the batch was prepared or not."""
    ready = load.prepared(batch(table, *rows))

    assert store.load(ready) == Loaded(len(rows), rows_new, rejects=0, is_repeat=False)
    assert store.load(batch(table, *rows, digest="2")).rows_new == 0


ENDED = {"valid_to_at": datetime(2026, 11, 20), "gpu_model": "H200"}  # noqa: DTZ001 -- naive UTC


@pytest.mark.parametrize("order", [1, -1])
@each({
    "a GPU's row that knows its end beats one that does not": ([{"gpu_model": "other"}, ENDED]),
    "of equally good rows one stays": ([{"gpu_model": "G200"}, {"gpu_model": "H200"}]),
})  # fmt: skip
def test_the_row_that_the_table_says_to_keep_stays_whichever_comes_first(store, order, rows):
    for number, row in enumerate(rows[::order]):
        assert store.load(batch("gpus", gpu(**row), digest=f"{number}")).rows_new == 1 - number
    assert store.read("select gpu_model from raw.gpus").rows() == [("H200",)]


def test_every_time_column_is_always_known():
    """Old rows are looked for between the first and last moment of a batch; a null has none."""
    timed = [model for model in sql_models.base_tables().values() if model.time]
    assert [m.name for m in timed if f"    {m.time} timestamp not null" not in m.sql] == []


def test_a_reject_keeps_its_line_and_reason_also_where_a_batch_has_nothing_else(store):
    long = "x" * (REJECT_CONTENT_MAX_CHARS + 1)
    rejects = [Reject(7, "14 fields", long), Reject(None, "cut")]
    empty = Batch("gpus", pl.DataFrame(), "test", "file", "1", rejects)

    assert store.load(empty) == Loaded(0, 0, 2, is_repeat=False)
    assert store.read("select line, reason, content from raw.rejects order by line").rows() == [
        (7, "14 fields", long[:-1]), (None, "cut", "")]  # fmt: skip


def test_the_note_of_a_load_is_in_utc(store):
    store.load(batch("gpu_samples", sample(3), sample(1)))

    noted = "select loaded_at, window_start_at, window_end_at from state.ingested"
    loaded_at, start, end = store.read(noted).row(0)
    assert abs((loaded_at.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()) < 60
    assert (start.minute, end.minute) == (1, 3)


def test_the_clock_of_the_machine_may_be_in_any_zone(tmp_path, empty_database):
    path = shutil.copyfile(empty_database, tmp_path / "fleet.duckdb")
    code = ("import sys; from goodput_queries.database import LocalStore\n"
            "store = LocalStore(sys.argv[1])\n"
            "print(store.read('select current_setting($1)', ['TimeZone']).item())")  # fmt: skip
    zone = {"TZ": "Asia/Tokyo", "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", code, path]
    assert subprocess.check_output(command, cwd=tmp_path, env=zone) == b"UTC\n"


def test_a_batch_that_does_not_fit_leaves_nothing_behind(store):
    with pytest.raises(StoreError, match=r"^file: its rows do not fit raw\.gpus: "):
        store.load(batch("gpus", {"gpu_uuid": "GPU-1", "node": None}, rejects=[Reject(1, "bad")]))

    for table in ("raw.gpus", "raw.rejects", "state.ingested"):
        assert store.read(f"select count(*) from {table}").item() == 0
    assert store.load(batch("gpus", gpu())).rows_new == 1


@pytest.mark.parametrize(("table", "row", "message"), [
    ("gpus", gpu(colour="green"), r"^raw\.gpus has no column 'colour'$"),
    ("gpu", gpu(), r"^there is no table 'gpu'; see `goodput show`$"),
])  # fmt: skip
def test_an_unknown_column_or_table_is_named(store, table, row, message):
    with pytest.raises(StoreError, match=message):
        store.load(batch(table, row))


@pytest.mark.parametrize("sql",
                         ["delete from raw.gpus", "select 1; drop table raw.gpus",
                          "with gone as (delete from raw.gpus returning *) select * from gone",
                          "copy raw.gpus to '/tmp/gpus.csv'", ""])  # fmt: skip
def test_reading_changes_nothing(store, sql):
    store.load(batch("gpus", gpu()))
    with pytest.raises(QueryError):
        store.read(sql)
    assert store.read("select count(*) from raw.gpus").item() == 1


def test_a_select_has_its_parameters_by_place_or_name_and_its_own_scope(store):
    assert store.read("select $1 || $2 as x", ["a", "'; --"]).item() == "a'; --"
    assert store.read("select $who as x", {"who": "me"}).item() == "me"
    sql = "select getvariable('scope_team') as team"
    assert store.read(sql, scope=Scope(team="vision")).item() == "vision"
    assert store.read(sql).item() is None, "not that of the read before"


ENDLESS = "select sum(a.range * b.range) from range(1000000) a, range(1000000) b"


def test_closing_stops_the_reads_of_other_threads(empty_database, tmp_path):
    store = LocalStore(shutil.copyfile(empty_database, tmp_path / "fleet.duckdb"))
    with ThreadPoolExecutor(1) as thread:
        begun_s = time.process_time()
        read = thread.submit(store.read, ENDLESS)
        until(lambda: time.process_time() > begun_s + 0.2, "the read is computed")
        store.close()

        with pytest.raises(QueryError, match=r"^the query of a closed database was stopped$"):
            read.result(20)


def test_threads_read_while_one_loads(store):
    """A reader sees whole batches only, and nobody is refused; a part is stored once."""
    is_done = threading.Event()

    def read():
        while not is_done.is_set():
            assert store.read("select count(*) from raw.gpu_samples").item() % 2 == 0

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read) for _ in range(4)]
        for minute in range(0, 40, 2):
            store.load(batch("gpu_samples", sample(minute), sample(minute + 1), digest=str(minute)))
        is_done.set()

    assert [reader.exception() for reader in readers] == [None] * 4
    assert store.read("select count(*) from raw.gpu_samples").item() == 40
    part = batch("gpu_samples", *(sample(minute) for minute in range(60)), digest="of all")
    with ThreadPoolExecutor(4) as threads:
        loaded = threads.map(store.load, [part] * 4)
    assert sorted(done.rows_new for done in loaded) == [0, 0, 0, 20]


def long_rows(count):
    at = datetime(2026, 11, 20, 12)  # noqa: DTZ001
    long = {"ts": at, "ts_precision": "exact", "kind": "xid"}
    return [{**long, "message": os.urandom(50_000).hex()} for _ in range(count)]


@contextlib.contextmanager
def no_file_grows_over(limit_bytes):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_no_fault_of_the_rows(store):
    rows = long_rows(20)
    said = r"fleet.duckdb: the disk is full or not writable: "
    with no_file_grows_over(50_000), pytest.raises(StoreError, match=said):
        store.load(batch("gpu_events", *rows))

    assert store.load(batch("gpu_events", *rows)).rows_new == 20


def test_a_log_that_a_full_disk_keeps_from_being_merged_is_no_loss(store, caplog):
    """DuckDB gives such a file up; it is opened again, with all that is in the log."""
    with store.cursor() as cursor:
        cursor.execute("set global checkpoint_threshold = '1MB'")
    loaded = 0
    with no_file_grows_over(Path(store.path).stat().st_size):
        while "it is opened again: " not in caplog.text and loaded < 500:
            loaded += store.load(batch("gpu_events", *long_rows(20), digest=str(loaded))).rows_new
            with ThreadPoolExecutor(4) as readers:  # one of them opens it
                found = readers.map(store.read, ["select count(*) from raw.gpu_events"] * 4)
                assert [count.item() for count in found] == [loaded] * 4

    assert 0 < loaded < 500
    with store.cursor() as cursor:
        cursor.execute("checkpoint")
    assert store.load(batch("gpu_events", *long_rows(20), digest="later")).rows_new == 20

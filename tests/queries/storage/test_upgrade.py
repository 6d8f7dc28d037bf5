"""A database of release 0.1.0 opens, keeps what was billed, and has the ledger of a new one."""

import contextlib
import logging.handlers
import lzma
import signal
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from tests.recorded_session import SAMPLE

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_queries.storage.migrations import current_version, migrations

VERSION = current_version(migrations())
KEPT = f"older.duckdb.before-version-{VERSION}"  # while a database is migrated
OLDER = Path(__file__).parent / "older_databases" / "0.1.0.duckdb.xz"
LEDGER = """select cluster, attempt_key, category, sum(gpu_ms) as gpu_ms
    from marts.ledger_hourly group by all order by all"""


def unpacked(folder):
    path = folder / "older.duckdb"
    path.write_bytes(lzma.decompress(OLDER.read_bytes()))
    return path


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Give a database of the release, opened and built, and what was logged on opening."""
    path = unpacked(tmp_path_factory.mktemp("upgraded"))
    path.with_name(KEPT).write_bytes(b"half a copy of one that was killed")
    log = logging.handlers.BufferingHandler(100)
    logging.getLogger().addHandler(log)
    try:
        store = LocalStore(path)
    finally:
        logging.getLogger().removeHandler(log)
    with contextlib.closing(store):
        store.build()
        yield store, [record.getMessage() for record in log.buffer]


def test_it_opens_with_a_sentence_for_each_change(opened):
    store, sentences = opened

    assert sentences[0].startswith(f"{store.path}: migrated to schema version 3: ")
    assert len(sentences) == 4
    assert "the next build recomputes the ledger" in sentences[-1]
    assert store.read("select max(schema_version) from raw.catalog").item() == VERSION
    assert not Path(store.path).with_name(KEPT).exists()


def test_it_has_the_ledger_of_a_new_database(opened, store):
    paths = [SAMPLE / "sacct.txt", SAMPLE / "job_events.jsonl.gz"]
    ingest(store, "auto", paths, ReadOptions())
    store.build()
    assert opened[0].read(LEDGER).rows() == store.read(LEDGER).rows()
    assert check(opened[0])["violations"].sum() == 0


def test_its_prices_and_a_closed_day_stay_as_they_were(opened):
    reads = ("select price_per_gpu_h from raw.rates",
             "select day, billed_cost, digest from billing.statement_days",
             "select sum(billed_cost) from billing.statement_rows")  # fmt: skip
    day = (date(2026, 11, 20), Decimal("1.11"), "e460a8f19a64cf7d8e29451b53f53c97")
    found = [opened[0].read(sql).rows() for sql in reads]
    assert found == [[(Decimal(3),)], [day], [(Decimal("1.11"),)]]


KILLED = """
import os, signal, sys
from goodput_queries.database import LocalStore
from goodput_queries.storage import schema
schema._create_views = lambda _: os.kill(os.getpid(), signal.SIGKILL)
LocalStore(sys.argv[1])
"""


@pytest.mark.machine
def test_a_kill_in_the_middle_of_a_migration_leaves_the_database_as_it_was(tmp_path):
    """It is killed once its migrations ran and all derived tables are gone, before the commit."""
    older = unpacked(tmp_path)
    before = older.read_bytes()

    killed = subprocess.run([sys.executable, "-c", KILLED, str(older)], check=False)

    assert killed.returncode == -signal.SIGKILL
    assert {path.name for path in tmp_path.iterdir()} == {older.name, KEPT}
    assert older.read_bytes() == older.with_name(KEPT).read_bytes() == before

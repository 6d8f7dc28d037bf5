"""Databases of earlier revisions open, keep what was billed, and have the ledger of a new one."""

import contextlib
import logging.handlers
import lzma
import signal
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from tests.recorded_session import SAMPLE

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.catalog import models
from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_queries.storage.migrations import current_version, migrations

OLDER = Path(__file__).with_name("older_databases")
REVISIONS = ["2026-11-22", pytest.param("2026-11-23", marks=pytest.mark.machine), "2026-11-24"]
LEDGER = """select cluster, attempt_key, category, sum(gpu_ms) as gpu_ms
    from marts.ledger_hourly group by all order by all"""


@pytest.fixture(scope="module")
def fresh(new_store):
    """Return the ledger of a new database with the same files."""
    store = new_store()
    paths = [SAMPLE / "sacct.txt", SAMPLE / "job_events.jsonl.gz"]
    ingest(store, "auto", paths, ReadOptions())
    store.build()
    rows = store.read(LEDGER).rows()
    store.close()
    return rows


def unpacked(revision, folder):
    path = folder / "older.duckdb"
    path.write_bytes(lzma.decompress((OLDER / f"{revision}.duckdb.xz").read_bytes()))
    return path


@pytest.fixture(scope="module", params=REVISIONS)
def revision(request):
    """Return the day of an earlier revision."""
    return request.param


@pytest.fixture(scope="module")
def opened(revision, tmp_path_factory):
    """Give a database of an earlier revision, opened and built, and what was logged on opening."""
    path = unpacked(revision, tmp_path_factory.mktemp("upgraded"))
    log = logging.handlers.BufferingHandler(100)
    logging.getLogger().addHandler(log)
    try:
        store = LocalStore(path)
    finally:
        logging.getLogger().removeHandler(log)
    with contextlib.closing(store):
        store.build()
        yield store, [record.getMessage() for record in log.buffer]


def test_it_opens_with_a_sentence_for_each_change(opened, revision):
    store, sentences = opened
    versions = [2, 3] if revision == "2026-11-24" else [1, 2, 3]
    for version, sentence in zip(versions, sentences, strict=False):
        assert sentence.startswith(f"{store.path}: migrated to schema version {version}: ")
    assert len(sentences) == len(versions) + 1
    assert "the next build recomputes the ledger" in sentences[-1]


def test_it_has_its_prices_and_the_ledger_of_a_new_database(opened, fresh):
    upgraded, _ = opened
    assert upgraded.read(LEDGER).rows() == fresh
    assert check(upgraded)["violations"].sum() == 0
    assert upgraded.read("select price_per_gpu_h from raw.rates").rows() == [(Decimal(3),)]


KILLED = """
import os, signal, sys
from goodput_queries.storage import migrations
from goodput_queries.database import LocalStore
migrations.record_version = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
LocalStore(sys.argv[1])
"""


@pytest.mark.machine
def test_a_kill_in_the_middle_of_a_migration_leaves_the_database_as_it_was(tmp_path):
    """It is killed after the last migration ran, before its transaction is committed."""
    older = unpacked("2026-11-22", tmp_path)
    before = older.read_bytes()

    killed = subprocess.run([sys.executable, "-c", KILLED, str(older)], check=False)

    assert killed.returncode == -signal.SIGKILL
    assert older.read_bytes() == before
    with contextlib.closing(LocalStore(older)) as store:
        assert store.read("select price_per_gpu_h from raw.rates").rows() == [(Decimal(3),)]
        version = store.read("select max(schema_version) from raw.catalog").item()
    assert version == current_version(migrations())
    assert not list(older.parent.glob("*.before-version-*"))


@pytest.mark.machine
def test_tables_change_their_schema_and_no_row(tmp_path):
    """Every table that left `raw` has the rows that it had, those of the old schema are gone."""
    older = unpacked("2026-11-24", tmp_path)
    moved = {m.name: m.qualified_name for m in models.base_tables().values() if m.layer != "raw"}
    del moved["built"]  # what the next build writes
    newer = (
        *("finding_actions", "notifications", "notified_findings"),
        *("counted_gpu_time", "counted_until", "audit_log", "adjustments", "serving_objectives"),
        *("saved_queries", "run_notes", "lake_versions", "lake_readings", "unpublished_days"),
        *("refused_builds", "claimed_logs"),
    )
    for newer_table in newer:
        del moved[newer_table]
    with duckdb.connect(older) as connection:
        connection.execute("insert into raw.kept_from values ('gpu_samples', 86400000)")
        connection.execute("insert into raw.reading_series values ('dcgm', 'GPU-1', '', 7, 1, 2)")
        connection.execute(
            "insert into raw.ledger_archive by name select 'c' as cluster, 'n' as node, "
            "'GPU-1' as gpu_uuid, '' as gpu_instance, 'idle' as category, 0 as hour_ms, 5 as gpu_ms"
        )
        before = {
            name: connection.sql(f"from raw.{name} order by all").fetchall() for name in moved
        }

    store = LocalStore(older)

    columns = {"statement_rows": "exclude (adjustment_id, reason, for_day)"}  # newer, too
    after = {
        name: store.read(f"select * {columns.get(name, '')} from {moved[name]} order by all").rows()
        for name in moved
    }
    assert after == before
    in_raw = store.read("select table_name from duckdb_tables() where schema_name = 'raw'")
    assert not set(in_raw["table_name"]) & moved.keys()
    store.close()


@pytest.mark.parametrize("revision", REVISIONS[1:], indirect=True)
def test_a_closed_day_stays_as_it_was_billed(opened):
    upgraded, _ = opened
    billed = upgraded.read("select day, billed_cost, digest from billing.statement_days").rows()
    assert billed == [(date(2026, 11, 20), Decimal("1.11"), "081c8f62e1d4eb59d6453da37bd5cd20")]
    kept = upgraded.read("select sum(billed_cost) from billing.statement_rows").item()
    assert kept == Decimal("1.11")

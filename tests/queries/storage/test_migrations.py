"""A database of an older version is migrated with a sentence; one of a newer version is refused."""

import contextlib
import logging
from unittest.mock import Mock

import polars as pl
import pytest

from goodput_queries.database import LocalStore
from goodput_queries.errors import StoreError
from goodput_queries.evidence.batch import Batch
from goodput_queries.storage import migrations, schema
from goodput_queries.storage.migrations import Migration

NOTE = Migration(1, "GPU power is stored twice.", "create table raw.note as select 1 as x")
MORE = Migration(2, "A second note.", "insert into raw.note values (2)")
BROKEN = Migration(2, "A table that is not there.", "insert into raw.nowhere values (2)")


@pytest.fixture(autouse=True)
def _without_views(monkeypatch):
    """Make no views, which takes seconds: migrations are of tables, test_upgrade.py has both."""
    monkeypatch.setattr(schema, "_create_views", lambda _: None)


@pytest.fixture
def database(tmp_path, monkeypatch):
    """Return a database of schema version 0 with one reading."""
    path = tmp_path / "fleet.duckdb"
    monkeypatch.setattr(migrations, "migrations", list)
    store = LocalStore(path)
    row = {"source": "test", "gpu_uuid": "GPU-1", "node": "n1"}
    store.load(Batch("gpus", pl.DataFrame([row]), source="test", origin="file", digest="1"))
    store.close()
    return path


def known(monkeypatch, *found):
    monkeypatch.setattr(migrations, "migrations", lambda: list(found))


def rows(path, sql):
    with contextlib.closing(LocalStore(path)) as store:
        return store.read(sql).rows()


def test_pending_migrations_run_in_order_and_say_one_sentence_each(database, monkeypatch, caplog):
    known(monkeypatch, NOTE, MORE)

    with caplog.at_level(logging.WARNING):
        found = rows(database, "select x from raw.note order by x")

    assert found == [(1,), (2,)]
    assert [record.message for record in caplog.records] == [
        f"{database}: migrated to schema version 1: GPU power is stored twice.",
        f"{database}: migrated to schema version 2: A second note.",
        f"{database}: another version of Goodput wrote this database; the next build recomputes "
        "the ledger from the stored evidence.",
    ]
    assert list(database.parent.iterdir()) == [database]  # no copy is left
    caplog.clear()
    assert rows(database, "select count(*) from raw.note") == [(2,)]
    assert caplog.records == [], "once it is migrated it opens without a word"


def test_a_new_database_runs_no_migration(tmp_path, monkeypatch):
    versions = [migration.version for migration in migrations.migrations()]
    assert versions == [*range(versions[0], versions[0] + len(versions))], "shipped without a gap"
    known(monkeypatch, BROKEN)
    assert rows(tmp_path / "new.duckdb", "select schema_version from raw.catalog") == [(2,)]


def test_a_failed_migration_changes_nothing_and_keeps_a_copy(database, monkeypatch):
    known(monkeypatch, NOTE, BROKEN)

    with pytest.raises(StoreError, match="was undone; a copy from before it is"):
        LocalStore(database)

    known(monkeypatch)
    copy = database.with_name("fleet.duckdb.before-version-2")
    assert copy.stat().st_mode & 0o077 == 0
    for path in (database, copy):
        assert rows(path, "select gpu_uuid from raw.gpus") == [("GPU-1",)]
        assert rows(path, "select 1 from duckdb_tables() where table_name = 'note'") == []


def test_a_database_of_a_newer_version_is_refused_and_left_alone(database, monkeypatch):
    known(monkeypatch, NOTE, MORE)
    LocalStore(database).close()
    before = database.read_bytes()
    known(monkeypatch, NOTE)

    with pytest.raises(StoreError) as refused:
        LocalStore(database)

    assert str(refused.value) == (
        f"{database}: a newer Goodput wrote this database (schema version 2; this one reads up to "
        "1). Nothing was changed. Install the newer Goodput again, or name another database with "
        "--db."
    )
    assert database.read_bytes() == before


def test_one_from_before_the_first_or_without_space_is_refused(database, monkeypatch):
    known(monkeypatch, MORE)
    with pytest.raises(StoreError, match=r"before release 0\.1\.0 .*this one reads 1 to 2"):
        LocalStore(database)

    known(monkeypatch, NOTE)
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(migrations.shutil, "copyfile", full)
    with pytest.raises(StoreError, match="Free as much disk space as the database takes"):
        LocalStore(database)

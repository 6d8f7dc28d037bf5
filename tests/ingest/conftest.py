"""Databases of tests that read sources: without views, which take most of the time of opening."""

import contextlib
import shutil
from pathlib import Path

import duckdb
import pytest
from tests.made_once import made_once

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.catalog import models
from goodput_queries.database import LocalStore
from goodput_queries.errors import StoreError
from goodput_queries.storage.row_groups import ROW_GROUP


@pytest.fixture(scope="session")
def without_views(empty_database, tmp_path_factory):
    """Give the empty database less its views, to be copied."""

    def make(path):
        whole = Path(shutil.copyfile(empty_database, path.with_name("whole.duckdb")))
        with contextlib.closing(duckdb.connect()) as both:
            both.execute(f"attach '{whole}' as whole")
            both.execute(f"attach '{path}' as made (type duckdb, row_group_size {ROW_GROUP})")
            views = both.execute(
                "select schema_name, view_name from duckdb_views() where database_name = 'whole' "
                "and not internal"
            )
            for schema, view in views.fetchall():
                both.execute(f'drop view whole.{schema}."{view}"')
            both.execute("copy from database whole to made")

    return made_once(tmp_path_factory, "without-views", make)


@pytest.fixture(scope="session")
def emptied_store(session_store, without_views):
    """Return what gives a database without rows, the same one where it is still open.

    Opening one takes ten times as long as deleting the rows of a test.
    """
    stores = []

    def emptied():
        if stores:
            try:
                _delete_rows(stores[-1])
            except (StoreError, duckdb.Error):  # a test has closed it
                stores.pop()
        if not stores:
            stores.append(session_store(copy_of=without_views))
        return stores[-1]

    return emptied


def _delete_rows(store):
    """Delete what was loaded, which `state.ingested` names, and states that ever had a row."""
    with store.writing() as cursor:
        filled = cursor.execute(
            """select distinct table_name from state.ingested union select table_name
            from duckdb_tables() where schema_name = 'state' and estimated_size > 0"""
        ).fetchall()
        for name in {"rejects", *(name for (name,) in filled)}:
            cursor.execute(f"delete from {models.base_tables()[name].qualified_name}")


@pytest.fixture
def store(emptied_store):
    """Give an empty database, which has no views and cannot be built."""
    return emptied_store()


@pytest.fixture
def read_text(store, tmp_path):
    """Return what writes a file and reads it as a source into the store; options by name."""

    def read(source, text, name="file", **options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return ingest(store, source, [path], ReadOptions(**options))

    return read


@pytest.fixture
def whole_store(own_store):
    """Give an empty database of the test's own with its views, which can be built."""
    return own_store()


@pytest.fixture(scope="module")
def recorded(recorded_demo, tmp_path_factory):
    """Give the recorded session, built."""
    path = tmp_path_factory.mktemp("recorded") / "recorded.duckdb"
    shutil.copyfile(recorded_demo, path)
    with contextlib.closing(LocalStore(path)) as opened:
        yield opened

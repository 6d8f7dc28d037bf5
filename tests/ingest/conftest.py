"""Databases of tests that read sources: without views, which take most of the time of opening."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from tests.made_once import made_once

from goodput_queries.evidence.batch import ROW_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from goodput_queries.storage.store import LocalStore


@pytest.fixture(scope="session")
def without_views(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the empty database less its views, to be copied."""

    def make(path: Path) -> None:
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


@pytest.fixture
def store(new_store: Callable[..., LocalStore], without_views: Path) -> Iterator[LocalStore]:
    """Give an empty database of the test's own, which has no views and cannot be built."""
    with contextlib.closing(new_store(copy_of=without_views)) as opened:
        yield opened
    shutil.rmtree(Path(opened.path).parent)


@pytest.fixture
def whole_store(new_store: Callable[..., LocalStore]) -> Iterator[LocalStore]:
    """Give an empty database of the test's own with its views, which can be built."""
    with contextlib.closing(new_store()) as opened:
        yield opened
    shutil.rmtree(Path(opened.path).parent)

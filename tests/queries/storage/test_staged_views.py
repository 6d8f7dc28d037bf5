"""Views that are evaluated before the query that reads them: which are skipped without evidence."""

import contextlib

import pytest

from goodput_queries.catalog import models
from goodput_queries.database import LocalStore
from goodput_queries.storage import staged_views

SKIPPED = [m for m in models.build_order() if m.is_staged_view and m.sources]


@pytest.fixture(scope="module")
def store(new_store, recorded_demo):
    """Give the recorded session, built."""
    with contextlib.closing(new_store(copy_of=recorded_demo)) as opened:
        yield opened


@pytest.fixture
def evaluated_views(store):
    """Give a cursor and where in it the rows of the views are."""
    with store.cursor() as cursor:
        yield cursor, evaluated(cursor, SKIPPED)


def test_a_view_is_skipped_only_where_its_evidence_would_give_no_row(evaluated_views):
    cursor, tables = evaluated_views
    with_rows = [m.name for m in SKIPPED if rows(cursor, f"from {tables[m.qualified_name]}")]

    wrong = [m.qualified_name for m in SKIPPED if has_rows_without(cursor, m, tables)]

    assert len(with_rows) > 10
    assert wrong == []


def test_a_skipped_view_has_the_columns_of_its_select(empty_database):
    store = LocalStore(empty_database, threads=1)
    try:
        with store.cursor() as cursor:
            selected = columns(cursor, evaluated(cursor, SKIPPED))
            skipped = {}
            for model in staged_views.named_in(" ".join(selected)):
                name = staged_views.as_temporary(cursor, model, skipped)
                skipped[model.qualified_name] = name
            assert columns(cursor, skipped) == selected
    finally:
        store.close()


def columns(cursor, tables):
    """Return name and type of the columns of tables."""
    return {
        name: [(c[0], str(c[1])) for c in cursor.execute(f"from {table} limit 0").description]
        for name, table in tables.items()
    }


def evaluated(cursor, wanted):
    """Evaluate views, skipping none; return where their rows are."""
    tables = {}
    for model in staged_views.named_in(" ".join(m.qualified_name for m in wanted)):
        select = staged_views.reading(model.sql, tables)
        kind = "table" if model.is_staged_view else "view"
        cursor.execute(f"create or replace temp {kind} {model.name} as {select}")
        tables[model.qualified_name] = f"temp.{model.name}"
    return tables


def has_rows_without(cursor, model, tables):
    """Say whether a view has rows once the tables of its header have none."""
    cursor.execute("begin")
    try:
        for source in model.sources:
            cursor.execute(f"delete from {tables.get(source, source)}")
        return rows(cursor, staged_views.reading(model.sql, tables)) > 0
    finally:
        cursor.execute("rollback")


def rows(cursor, select):
    """Return how many rows a select has."""
    return int(cursor.execute(f"select count(*) from ({select})").fetchall()[0][0])

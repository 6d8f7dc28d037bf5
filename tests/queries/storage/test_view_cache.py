"""Evaluated views are kept for the next reads, and never longer than their rows are true."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest
from tests.queries.conftest import built_once, store_of

from goodput_queries.catalog import models
from goodput_queries.database import LocalStore
from goodput_queries.errors import QueryError
from goodput_queries.evidence.batch import Batch
from goodput_queries.scope import EVERYTHING, Scope
from goodput_queries.storage import staged_views, view_cache

HOUR = 3600
MADE = f"select count(*) from duckdb_tables() where database_name = '{view_cache.DATABASE}'"
RUNS = "select run_key, held_ms from marts.runs order by run_key"


@built_once
def fleet(made):
    """Return a cluster of two nodes with a job on the first, built once."""
    for node in ("a", "b"):
        made.node(node, 2)
    made.job("1", 0, HOUR, ["a"], 2)


def kept(store):
    return store.read(MADE).item()


def test_kept_answers_equal_those_that_are_not_kept(fleet, monkeypatch):
    """What only a kept view reads is not made again."""
    for scope in (EVERYTHING, Scope(node="b"), Scope(team="ml"), EVERYTHING):
        plain = fleet.store.read(RUNS, scope=scope)

        assert fleet.store.read(RUNS, scope=scope, is_kept=True).equals(plain)
    monkeypatch.setattr(staged_views, "as_temporary", None)
    assert fleet.store.read(RUNS, is_kept=True).equals(plain)


def test_a_filter_leaves_what_does_not_depend_on_it(fleet):
    fleet.store.read(RUNS, scope=Scope(team="x"), is_kept=True)
    before = kept(fleet.store)

    fleet.store.read(RUNS, scope=Scope(team="y"), is_kept=True)

    made = kept(fleet.store) - before
    assert 0 < made < before


@pytest.mark.parametrize("is_committing", [False, True])
def test_nothing_is_kept_unasked_or_of_a_state_that_is_being_committed(fleet, *, is_committing):
    fleet.store.commits += is_committing
    before = kept(fleet.store)
    fleet.store.read(RUNS, scope=Scope(team="nobody"), is_kept=is_committing)
    fleet.store.commits += is_committing

    assert kept(fleet.store) == before


def test_answers_that_a_commit_made_stale_are_dropped_and_made_again(fleet):
    for scope in (EVERYTHING, *(Scope(team=team) for team in "abc")):
        fleet.store.read(RUNS, scope=scope, is_kept=True)
    before, runs = kept(fleet.store), fleet.store.read(RUNS).height
    fleet.job("2", 0, HOUR, ["b"], 2)
    fleet.store.build()

    again = fleet.store.read(RUNS, is_kept=True)

    assert again.height == runs + 1
    assert again.equals(fleet.store.read(RUNS))
    assert kept(fleet.store) < before


def test_more_rows_than_memory_is_meant_for_are_dropped(fleet, monkeypatch):
    monkeypatch.setattr(view_cache, "ROWS_MAX", 0)

    answer = fleet.store.read(RUNS, scope=Scope(node="a"), is_kept=True)

    assert answer.equals(fleet.store.read(RUNS, scope=Scope(node="a")))
    rows = "sum(estimated_size) from duckdb_tables() where database_name = 'kept'"
    assert fleet.store.read(f"select {rows}").item() in (None, 0)


def test_a_read_waits_for_a_view_that_another_is_evaluating(fleet, monkeypatch):
    both_asked, evaluated_views = threading.Barrier(2), []
    definition, take = staged_views.definition, view_cache.ViewCache._take

    def defined(cursor, model, tables):
        if not evaluated_views:
            both_asked.wait(timeout=10)
        evaluated_views.append(model.qualified_name)
        return definition(cursor, model, tables)

    def taken(*given):
        if threads[threading.get_ident()] == "second":
            both_asked.wait(timeout=10)
        return take(*given)

    def read(name):
        threads[threading.get_ident()] = name
        return fleet.store.read(RUNS, scope=Scope(team="together"), is_kept=True)

    threads = {}
    monkeypatch.setattr(staged_views, "definition", defined)
    monkeypatch.setattr(view_cache.ViewCache, "_take", taken)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(read, "first"), pool.submit(read, "second")

    assert first.result().equals(second.result())
    assert len(evaluated_views) == len(set(evaluated_views)) > 0


def test_a_read_that_waits_for_a_view_ends_at_its_time_limit(fleet, monkeypatch):
    is_asked, is_over = threading.Event(), threading.Event()
    definition = staged_views.definition

    def defined(*given):
        is_asked.set()
        assert is_over.wait(timeout=10)
        return definition(*given)

    monkeypatch.setattr(staged_views, "definition", defined)
    asked = {"scope": Scope(team="limited"), "is_kept": True}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(fleet.store.read, RUNS, **asked)
        assert is_asked.wait(timeout=10)
        with pytest.raises(QueryError, match=r"took longer than 0\.05 s"):
            fleet.store.read(RUNS, timeout_s=0.05, **asked)
        is_over.set()

    assert first.result().equals(fleet.store.read(RUNS, **asked))


def test_a_view_depends_on_the_variables_of_its_macros_and_inputs():
    """What asks the clock is not kept, and one that a filter by team changes by the teams, too."""
    assert not view_cache.is_kept("marts.rule_source_failing")
    assert view_cache.is_kept("marts.loss_claims")
    bounds = ("scope_from_ms", "scope_to_ms")
    assert view_cache.scope_variables("intermediate.int_held_bins") == bounds
    filters = {f"scope_{name}" for name in ("cluster", "node", "team", "run")}
    assert {*filters, *bounds} <= set(view_cache.scope_variables("marts.hangs"))
    views = [m.qualified_name for m in models.build_order() if m.is_staged_view]
    by_team = [v for v in map(view_cache.scope_variables, views) if "scope_team" in v]
    assert by_team
    assert all("scope_teams" in variables for variables in by_team)


def test_every_macro_that_reads_the_scope_is_found():
    """A variable that is read in no way that is looked for would give a stale answer."""
    text = "\n".join(models.macro_files())

    found = "".join(models.macros().values())

    assert found.count("getvariable('scope_") == text.count("getvariable('scope_") > 0


SKIPPED = [m for m in models.build_order() if m.is_staged_view and m.sources]
store = store_of("recorded_demo")


def test_a_view_is_skipped_only_where_its_evidence_would_give_no_row(store):
    with store.cursor() as cursor:
        tables = evaluated(cursor, SKIPPED)
        with_rows = [m.name for m in SKIPPED if rows(cursor, f"from {tables[m.qualified_name]}")]

        wrong = [m.qualified_name for m in SKIPPED if has_rows_without(cursor, m, tables)]

    assert len(with_rows) > 10
    assert wrong == []


def test_a_skipped_view_has_the_columns_of_its_select(empty_database):
    with (
        contextlib.closing(LocalStore(empty_database, threads=1)) as store,
        store.cursor() as cursor,
    ):
        selected = columns(cursor, evaluated(cursor, SKIPPED))
        skipped = {}
        for model in staged_views.named_in(" ".join(selected)):
            skipped[model.qualified_name] = staged_views.as_temporary(cursor, model, skipped)
        assert columns(cursor, skipped) == selected


def columns(cursor, tables):
    """Return name and type of the columns of tables."""
    return {name: [(c[0], str(c[1])) for c in cursor.execute(f"from {table} limit 0").description]
            for name, table in tables.items()}  # fmt: skip


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


def test_answers_outlast_polls_and_builds_of_nothing(store):
    nodes = pl.DataFrame({"source": ["test"], "cluster": ["lab"], "node": ["a"]})
    states = [store.commits]

    def noted(act):
        act()
        states.append((store.commits - states[0]) // 2)

    noted(lambda: store.load(Batch("nodes", nodes, "test", "a", "1"), is_polled=True))
    noted(store.show_all)
    noted(store.show_all)
    noted(lambda: store.load(Batch("nodes", nodes, "test", "b", "2"), is_polled=True))
    noted(store.build)
    noted(store.build)
    noted(store.show_all)
    noted(lambda: store.load(Batch("nodes", nodes, "test", "c", "3")))

    assert states[1:] == [0, 1, 1, 1, 2, 2, 2, 3]

"""Who sees the rows of one team only learns nothing of the others, from any view."""

from dataclasses import replace

import pytest
from tests.queries.conftest import START_MS, each
from tests.two_teams import COBALTS, END_S, OTHERS, RED, built

from goodput_queries.catalog.find import catalogue
from goodput_queries.check import check
from goodput_queries.errors import NotPermittedError
from goodput_queries.objectives.goodput import Objective, as_variable
from goodput_queries.scope import Scope

WHOLE = Scope(START_MS, START_MS + 1000 * END_S, bucket_ms=600_000)
LIMITED = replace(WHOLE, teams=(RED,))
OF_A_TEAM = sorted(name for name, model in catalogue().items() if model.access == "team")
REFUSED = sorted(name for name, model in catalogue().items() if model.access is None)
TOGETHER = 10  # views in one statement, which shares what several of them read


@pytest.fixture(scope="module")
def stores(module_store, filled):
    """Give the red team beside the cobalt one, and beside one of other names and amounts."""
    made = []
    for other in (COBALTS, OTHERS):
        store = module_store(copy_of=built(filled, other))
        store.variables["goodput_objectives"] = as_variable(
            [Objective(0.9, team=team) for team in (RED, other.name)]
        )
        made.append(store)
    return made


def read(store, names, scope):
    """Return the rows of views in an order of their own, as text."""
    ordered = sorted(names, key=lambda name: (not catalogue()[name].is_staged_view, name))
    found = {}
    for first in range(0, len(ordered), TOGETHER):
        part = ordered[first : first + TOGETHER]
        lists = ", ".join(f"(select list(x) from {name} as x) v{n}" for n, name in enumerate(part))
        (row,) = store.read(f"select {lists}", scope=scope, is_kept=True).rows()
        found |= {name: sorted(map(text, rows or [])) for name, rows in zip(part, row, strict=True)}
    return found


def text(value):
    """Return a value as text; sums of floats differ in their last digits."""
    if isinstance(value, dict):
        return str({name: text(part) for name, part in value.items()})
    if isinstance(value, (list, tuple)):
        return str([text(part) for part in value])
    return f"{value:.9g}" if isinstance(value, float) else str(value)


@pytest.fixture(scope="module")
def seen(stores):
    """Return what a reader of the red team sees of all views that are for them, in each store."""
    return [read(store, OF_A_TEAM, LIMITED) for store in stores]


def test_another_team_changes_nothing_of_what_a_team_sees(stores, seen):
    """No view names it, and not one value differs where its names, times and amounts do."""
    assert check(stores[0])["violations"].sum() == 0
    cobalt, azure = seen
    for word, views in (("cobalt", cobalt), ("azure", azure)):
        assert [name for name, rows in views.items() if word in str(rows)] == []
    differing = {name: [*{*cobalt[name]} ^ {*azure[name]}] for name in OF_A_TEAM
                 if cobalt[name] != azure[name]}  # fmt: skip
    assert differing == {}
    empty = [name for name, rows in cobalt.items() if not rows]
    assert len(empty) <= len(OF_A_TEAM) / 5, empty


def test_who_is_not_limited_sees_both_teams(stores):
    names = ("marts.runs", "marts.statement_lines", "marts.losses", "marts.attempts",
             "marts.gpu_allocations", "marts.waste_by_team", "marts.search_targets")  # fmt: skip
    every = read(stores[0], names, WHOLE)
    by_name = read(stores[0], names[:5:2], replace(WHOLE, teams=(RED, COBALTS.name)))

    assert all("cobalt" in str(rows) and "red" in str(rows) for rows in every.values())
    assert by_name["marts.runs"] == every["marts.runs"]


@pytest.mark.parametrize("teams", [(), ("nobody",)])
def test_who_sees_no_team_sees_no_row(stores, teams):
    names = ("marts.runs", "marts.ledger_scoped", "marts.statement_lines", "marts.search_targets")
    assert set(map(tuple, read(stores[0], names, replace(WHOLE, teams=teams)).values())) == {()}


@each({"team": COBALTS.name}, {"user": "cobaltuser"}, {"run": "c/cobaltrun"})
def test_a_filter_of_another_team_widens_nothing(stores, asked):
    names = ("marts.run_categories", "marts.attempts", "marts.losses", "marts.search_targets")
    found = read(stores[0], names, replace(LIMITED, **asked))
    assert "cobalt" not in str(found)
    assert (found["marts.run_categories"], found["marts.attempts"]) == ([], [])


def test_every_other_view_is_refused(stores):
    """A new view is refused until its header says who may read it."""
    assert {"marts.capacity", "raw.job_runs", "state.ingested", "marts.unit_states"} <= {*REFUSED}
    for name in REFUSED:
        with pytest.raises(NotPermittedError, match="rows of your teams only"):
            stores[0].read(f"select * from {name}", scope=LIMITED)


def test_a_run_that_two_teams_call_alike_is_distinguished(stores):
    """Its job runs of the other team are in no sum of it."""
    of_run = "from marts.runs where run_key = 'c/common'"
    found = stores[0].read(f"select team, user_name, attempts, held_ms {of_run}", scope=LIMITED)

    assert found.rows() == [(RED, "reduser", 1, 2 * 4_200_000)]


@pytest.mark.parametrize("part", range(2))
def test_a_filter_on_another_cluster_leaves_no_row(stores, part):
    columns = stores[0].read(
        "select table_schema || '.' || table_name from information_schema.columns "
        "where column_name in ('run_key', 'cluster') and table_schema = 'marts'"
    )
    shown = [name for name in OF_A_TEAM if name in set(columns.to_series())][part::2]
    counts = ", ".join(f"(select count(*) from {name}) as v{n}" for n, name in enumerate(shown))
    elsewhere = replace(WHOLE, cluster="elsewhere", run="c/redrun")

    found = stores[0].read(f"select {counts}", scope=elsewhere, is_kept=True).row(0)
    left = {name for name, rows in zip(shown, found, strict=True) if rows}
    assert left <= {"marts.search_targets"}

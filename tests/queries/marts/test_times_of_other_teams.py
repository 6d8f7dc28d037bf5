"""No answer to a reader of one team says when, on a day, another team worked."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.examples import examples
from tests.queries.conftest import START_MS, Evidence
from tests.two_teams import COBALTS, END_S, RED, built, load

from goodput_app.sql_access.formats import content
from goodput_queries.sandbox.limits import Limits
from goodput_queries.sandbox.select import select
from goodput_queries.scope import Scope

DAY_S = 86_400
MIDNIGHT_S = 16 * 3600  # the first one after the start
# the same runs of the other team on the same day, at other seconds of it
MOVED = replace(COBALTS, fails_at=2_811, late_s=2.9, shared_from=4_251, shared_until=6_097)
VIEWS = ("runs_withheld", "runs", "ledger_scoped", "attempts", "losses", "serving_requests",
         "serving_tenants", "queue_waits", "run_gpus")  # fmt: skip
COUNTS = "select runs, withheld from marts.runs_withheld"


@pytest.fixture(scope="module")
def worlds(module_store, filled):
    """Give two databases that differ in seconds of another team, a day after they are over."""
    cobalts, moved = module_store(copy_of=built(filled, COBALTS)), module_store()
    for store in (cobalts, moved):
        Evidence(store, _parts=iter(range(1000, 2000))).state("*", "up", 0, MIDNIGHT_S + DAY_S)
    cobalts.build()
    load(moved, MOVED)
    return cobalts, moved


windows = st.builds(
    lambda start, length: Scope(
        START_MS + start * 1000, START_MS + (start + length) * 1000, teams=(RED,)),
    st.integers(-DAY_S, 3 * DAY_S) | st.integers(0, END_S), st.integers(1, END_S),
)  # fmt: skip
property_of_windows = settings(
    max_examples=examples(4), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip


@pytest.mark.machine
@property_of_windows
@given(scope=windows)
def test_views_of_any_window_are_the_same_wherever_on_a_day_another_team_worked(worlds, scope):
    for view in VIEWS:
        sql = f"select * from marts.{view} order by all"
        first, second = (world.read(sql, scope=scope) for world in worlds)
        # a sum of amounts of money differs in its last digit by the order of its rows
        assert_frame_equal(first, second, check_exact=False, rel_tol=1e-12, abs_tol=0)


@pytest.mark.machine
@settings(property_of_windows, max_examples=examples(1))
@given(scope=windows)
def test_answers_to_selects_are_the_same_too(worlds, scope):
    sql = "select count(*) as n from marts.serving_requests, marts.attempts"
    of_one_thread = Limits(threads=1)
    first, second = (
        content(select(world, sql, scope=scope, limits=of_one_thread), "json") for world in worlds
    )

    assert first == second
    assert b'"rows_withheld": true' in first


def test_runs_of_other_teams_are_counted_by_days_that_are_over(worlds):
    """Any second of a day counts the whole day."""
    whole = Scope(START_MS, START_MS + 1000 * END_S)
    assert worlds[0].read(COUNTS, scope=whole).row(0) == (4, 0)
    starts = (START_MS + 1000 * second for second in (0, 2_569, 2_571, END_S, MIDNIGHT_S - 1))
    for scope in (whole, *(Scope(start, start + 1000) for start in starts)):
        assert worlds[0].read(COUNTS, scope=replace(scope, teams=(RED,))).row(0) == (4, 1), scope


def test_a_day_that_is_not_over_is_not_counted(evidence):
    evidence.job_on_a_node("1", 0, 100, 1, account="cobaltteam", watched=200)
    evidence.store.build()
    assert evidence.read(COUNTS, Scope(teams=(RED,))).row(0) == (0, 0)

"""The Waste page: gaps of whole jobs, and those that come back regularly."""

import pytest
from tests.app.opened_page import texts
from tests.queries.conftest import Evidence

HOSTILE = "<b>&|`x`</b>"


def built(store, gaps):
    """Return the store, built, with a job of two GPUs that are idle in these gaps."""
    evidence = Evidence(store)
    evidence.node("a", 2)
    evidence.job("1", 0, 7200, ["a"], 2, job_name=HOSTILE)
    for gpu in ("a#0", "a#1"):
        evidence.samples(
            gpu, evidence.every(-10, 7200), lambda s: not any(b < s <= e for b, e in gaps)
        )
    evidence.store.build()
    return evidence.store


@pytest.fixture(scope="module")
def regular(new_store):
    """Give a job with a gap of 40 s in every ten minutes."""
    store = built(new_store(), [(start, start + 40) for start in range(600, 7000, 600)])
    yield store
    store.close()


@pytest.fixture(scope="module")
def without_gaps(new_store):
    """Give a job that works all the time."""
    store = built(new_store(), [])
    yield store
    store.close()


def test_gaps_of_a_job_are_counted_once_for_all_its_gpus(regular, visit):
    shown = texts(visit(regular, "idle_gaps"))

    assert "Gaps of jobs" in shown
    assert "11 gaps, " in shown
    assert "22 idle gaps, " in shown  # of single GPUs


def test_a_gap_names_its_run_as_people_know_it(regular, visit):
    frames = [element.value for element in visit(regular, "idle_gaps").dataframe]
    named = {name for frame in frames if "run_name" in frame for name in frame["run_name"]}

    assert named == {f"{HOSTILE} (1)"}


def test_a_picked_periodic_gap_shows_its_evidence(regular, visit):
    run, coincides = regular.read("select job_run_key, coincides from marts.periodic_gaps").row(0)

    shown = texts(visit(regular, "idle_gaps", periodic=f"{run}|{coincides}"))

    assert (
        r"**Evidence:** every 600 s \(jitter 0 s\) 2 GPUs were idle for up to 50 s, 11 times"
        in shown
    )


def test_shorter_gaps_are_left_out_where_a_least_length_is_chosen(regular, visit):
    shown = texts(visit(regular, "idle_gaps", least="60"))

    assert "11 gaps, " not in shown


def test_a_job_without_gaps_says_so(without_gaps, visit):
    assert "No gap of one second or more in this scope." in texts(visit(without_gaps, "idle_gaps"))

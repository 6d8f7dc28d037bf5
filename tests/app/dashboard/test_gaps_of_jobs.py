"""The Waste page: gaps of whole jobs, and those that come back regularly."""

import pytest
from tests.app.opened_page import texts
from tests.queries.conftest import Evidence

HOSTILE = "<b>&|`x`</b>"


@pytest.fixture(scope="module")
def regular(new_store):
    """Give a job of two GPUs with a gap of 40 s in every ten minutes, and one without any."""
    evidence = Evidence(new_store())
    gaps = [(start, start + 40) for start in range(600, 7000, 600)]
    for node, gpus, job, name in (("a", 2, "1", HOSTILE), ("b", 1, "2", "busy")):
        evidence.node(node, gpus)
        evidence.job(job, 0, 7200, [node], gpus, job_name=name)
        for gpu in range(gpus):
            evidence.samples(
                f"{node}#{gpu}",
                evidence.every(-10, 7200),
                lambda s, of=gaps if node == "a" else []: not any(b < s <= e for b, e in of),
            )
    evidence.store.build()
    yield evidence.store
    evidence.store.close()


def test_gaps_of_a_job_are_counted_once_for_all_its_gpus_under_its_name(regular, visit):
    app = visit(regular, "idle_gaps")

    shown = texts(app)
    assert "Gaps of jobs" in shown
    assert "11 gaps, " in shown
    assert "22 idle gaps, " in shown  # of single GPUs
    frames = [element.value for element in app.dataframe]
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

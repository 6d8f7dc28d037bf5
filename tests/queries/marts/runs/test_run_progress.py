"""How far a run came, and how it has been doing since its last restart."""

import pytest
from tests.queries.conftest import built_together, durable, steps


@built_together
def test_a_run_that_crashed_and_went_on(cluster):
    """40 of 100 steps before the crash are lost; the second life ends well."""
    cluster.job_on_a_node("1", 0, 1000, 1, state="FAILED", job_name="llm")
    cluster.job("2", 1100, 1700, ["a"], 1, job_name="llm")
    cluster.events("llm", [*steps(1, 100, 0), durable(60, 605)])
    cluster.events("llm", [*steps(61, 120, 1100), durable(120, 1700)], attempt=1)
    yield
    (run,) = cluster.read("select * from marts.runs").rows(named=True)
    assert run["interruptions"] == 1
    assert run["last_retained_step"] == 120
    assert run["rolled_back_s"] == pytest.approx(400)
    assert run["goodput_since_restart_ratio"] == pytest.approx(1)
    assert run["goodput_1d_ratio"] == pytest.approx(1200 / 1600)


@built_together
def test_an_interruption_that_ends_the_run_counts(cluster):
    cluster.job_on_a_node("1", 0, 1000, 1, state="FAILED")
    cluster.events("1", steps(1, 100, 0))
    yield
    assert cluster.read("select interruptions from marts.runs").item() == 1


@built_together
def test_a_run_of_which_nothing_is_measured_has_no_goodput(cluster):
    """Accounting alone: allocated time, and no word of what the GPUs did in it."""
    cluster.job_on_a_node("1", 0, 1000, 1)
    yield
    (run,) = cluster.read("select * from marts.runs").rows(named=True)
    parts = ("of_held", "since_restart", "1d", "3d", "5d")
    assert [run[f"goodput_{part}_ratio"] for part in parts] == [None] * len(parts)
    assert run["goodput_of_held_hi_ratio"] == 1

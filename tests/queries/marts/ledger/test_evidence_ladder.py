"""The rung of evidence that the first tile can stand on, with its ratio and coverage."""

import pytest

from goodput_queries.scope import EVERYTHING, Scope

START_MS = 1_800_000_000_000


def ladder(evidence, scope=EVERYTHING):
    """Build and return the one row of the ladder."""
    evidence.store.build()
    frame = evidence.store.read("from marts.evidence_ladder", scope=scope)
    return frame.row(0, named=True)


@pytest.fixture
def node_read(evidence):
    """Give a node of two GPUs, one at work, read for 1,000 s."""
    evidence.node("a", 2)
    evidence.samples("a#0", evidence.every(0, 1000), lambda _: True)
    evidence.samples("a#1", evidence.every(0, 1000), lambda _: False)
    return evidence


def steps(evidence, run, until):
    events = [{"t": 0, "event": "job.start"}]
    events += [
        {"t": t, "event": "step", "step": t // 10, "dur_s": 10} for t in range(10, until + 1, 10)
    ]
    evidence.events(run, events)


def test_attempts_that_report_steps_in_half_of_the_allocated_time_give_goodput(node_read):
    node_read.job("1", 0, 1000, ["a"], 2)
    steps(node_read, "1", 1000)

    row = ladder(node_read)

    assert (row["rung"], row["coverage"], row["next_step"]) == ("goodput", 1.0, None)
    assert row["ratio"] == pytest.approx(1.0)


def test_jobs_that_report_nothing_give_the_share_of_allocated_time_that_was_active(node_read):
    node_read.job("1", 0, 1000, ["a"], 2)

    row = ladder(node_read)

    assert row["rung"] == "active_while_allocated"
    assert row["ratio"] == pytest.approx(0.5)
    assert row["coverage"] == pytest.approx(1.0)
    assert "five lines of Python" in row["next_step"]


def test_few_attempts_that_report_steps_do_not_represent_the_rest(node_read):
    node_read.node("b", 6)
    node_read.job("1", 0, 1000, ["a"], 2)
    node_read.job("2", 0, 1000, ["b"], 6)
    steps(node_read, "1", 1000)

    row = ladder(node_read)

    assert (row["rung"], row["ratio"]) == ("active_while_allocated", None)
    assert row["coverage"] == pytest.approx(0.25)
    assert "telemetry" in row["next_step"]


def test_without_a_scheduler_the_activity_of_gpus_is_all_there_is(node_read):
    row = ladder(node_read)

    assert row["rung"] == "gpu_activity"
    assert row["ratio"] == pytest.approx(0.5)
    assert row["coverage"] == pytest.approx(1.0)
    assert "scheduler" in row["next_step"]


def test_a_window_of_minutes_counts_those_minutes_alone(node_read):
    node_read.samples("a#1", node_read.every(1010, 2000), lambda _: True)
    node_read.samples("a#0", node_read.every(1010, 2000), lambda _: True)

    row = ladder(node_read, Scope(from_ms=START_MS + 1_000_000, to_ms=START_MS + 2_000_000))

    assert row["ratio"] == pytest.approx(1.0)
    assert row["capacity_ms"] == 2_000_000


def test_filters_finer_than_the_cluster_do_not_change_the_rung(node_read):
    node_read.job("1", 0, 1000, ["a"], 2)
    steps(node_read, "1", 1000)

    assert ladder(node_read, Scope(team="other"))["rung"] == "goodput"

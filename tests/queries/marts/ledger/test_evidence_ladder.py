"""The rung of evidence that the first tile can stand on, with its ratio and coverage."""

import pytest
from tests.queries.conftest import START_MS, built_together, steps

from goodput_queries.scope import Scope


def ladder(cluster, **scope):
    frame = cluster.read("from marts.evidence_ladder", scope=Scope(**scope))
    return frame.row(0, named=True)


def node_read(cluster):
    """Load a node of two GPUs, one at work, read for 1,000 s."""
    cluster.node("a", 2)
    cluster.samples("a#0", cluster.every(0, 1000), lambda _: True)
    cluster.samples("a#1", cluster.every(0, 1000), lambda _: False)


# what it shows: GPUs of the job runs, of which the first reports steps; rung, ratio and coverage,
# what the next step is about
RUNGS = {
    "attempts that report steps in half of the allocated time give goodput": (
        [2], True, ("goodput", 1.0, 1.0), None,
    ),
    "of jobs that report nothing it is the share of allocated time that was active": (
        [2], False, ("active_while_allocated", 0.5, 1.0), "five lines of Python",
    ),
    "few attempts that report steps do not represent the rest": (
        [2, 6], True, ("active_while_allocated", None, 0.25), "it covers a part",
    ),
    "without a scheduler the activity of GPUs is all there is": (
        [], False, ("gpu_activity", 0.5, 1.0), "scheduler",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("jobs", "has_steps", "expected", "about"), RUNGS.values(), ids=RUNGS)
@built_together
def test_rung_of_the_evidence(cluster, jobs, has_steps, expected, about):
    node_read(cluster)
    for number, gpus in enumerate(jobs):
        if number:
            cluster.node("b", gpus)
        cluster.job(str(number), 0, 1000, ["ab"[number]], gpus)
    if has_steps:
        cluster.events("0", [{"t": 0, "event": "job.start"}, *steps(1, 100, 0)])
    yield
    row = ladder(cluster)
    assert (row["rung"], row["ratio"], row["coverage"]) == pytest.approx(expected)
    assert row["next_step"] is None if about is None else about in row["next_step"]
    if has_steps:  # filters finer than the cluster change no rung
        assert ladder(cluster, team="other")["rung"] == expected[0]


@built_together
def test_a_window_of_minutes_counts_those_minutes_alone(cluster):
    node_read(cluster)
    for gpu in ("a#0", "a#1"):
        cluster.samples(gpu, cluster.every(1010, 2000), lambda _: True)
    yield
    row = ladder(cluster, from_ms=START_MS + 1_000_000, to_ms=START_MS + 2_000_000)
    assert row["ratio"] == pytest.approx(1.0)
    assert row["capacity_ms"] == 2_000_000

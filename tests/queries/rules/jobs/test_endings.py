"""How an attempt ended, where the scheduler's state alone does not say."""

import pytest
from tests.queries.conftest import at, built_together, durable, steps


def outcome(cluster):
    rows = cluster.read("select outcome, cause from marts.attempts order by attempt").rows()
    return rows[0]


# what it shows: exit code, what the job says of its end; outcome and cause
REQUEUED = {
    "crashed, as `requeue-exit` of the recorded Slurm": ("14:0", None, ("failed", "FAILED")),
    "reports a crash": ("0:0", "nan", ("failed", "nan")),
    "requeued by the operator": ("0:0", "preempted", ("limit", "REQUEUED")),
}


@pytest.mark.parametrize(("exit_code", "said", "expected"), REQUEUED.values(), ids=REQUEUED)
@built_together
def test_an_attempt_that_was_requeued(cluster, exit_code, said, expected):
    cluster.job_on_a_node("7", 0, 200, 1, "REQUEUED", exit_code=exit_code)
    cluster.job("7", 300, 600, ["a"], 1, submit=200, eligible=300)
    failure = [{"event": "failure", "kind": said, "t": 115}] if said else []
    cluster.events("7", [*steps(1, 10, 10), durable(10, 111), *failure], attempt=0)
    cluster.events("7", steps(11, 20, 310), attempt=1)
    yield
    assert outcome(cluster) == expected
    if expected[0] == "failed":
        assert cluster.gpu_s()["fault_stall"] == 90


# what its log says at the end of 10 saved and 10 further steps; state, outcome, steps that are kept
WITHOUT_A_SCHEDULER = {
    "ends well": ([("job.end", None, 210)], ("COMPLETED", "ok", 20)),
    "ends well after an error that it handled": (
        [("failure", "exception", 210), ("job.end", None, 210)], ("COMPLETED", "ok", 20),
    ),
    "fails": ([("failure", "exception", 210)], ("FAILED", "failed", 10)),
    "is cancelled by Slurm": (
        [("failure", "cancelled", 210), ("job.end", None, 210)], ("CANCELLED", "limit", 10),
    ),
    "is preempted": (
        [("failure", "preempted", 210), ("job.end", None, 210)], ("PREEMPTED", "limit", 10),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("ending", "expected"), WITHOUT_A_SCHEDULER.values(), ids=WITHOUT_A_SCHEDULER
)
@built_together
def test_a_run_whose_log_alone_says_how_it_ended(cluster, ending, expected):
    said = [{"event": event, "kind": kind, "t": t} for event, kind, t in ending]
    work = [{"t": 0, "event": "job.start"}, *steps(1, 20, 0), durable(10, 105)]
    cluster.events("train", [*work, *said], attempt=None, host="a", local_rank=0)
    yield
    (attempt,) = cluster.read("select state, outcome, kept_steps from marts.attempts").rows()
    assert attempt == expected


@built_together
def test_steps_of_a_run_that_just_stops_stay_at_risk(cluster):
    """Its log has a last line and no ending: whether it saved nobody says."""
    cluster.job_on_a_node("1", 0, 200, 1, "UNKNOWN")
    cluster.job("2", 200, 400, ["a"], 1)
    cluster.events("1", steps(1, 10, 10))
    yield
    assert outcome(cluster)[0] == "unknown"
    assert cluster.gpu_s()["at_risk"] == 100


@built_together(builds=2)
def test_a_followed_log_that_falls_silent_ends_with_its_last_line(cluster):
    """By the evidence of its cluster: 15 minutes later another log there goes on."""
    for job, node, until in (("1", "a", 100), ("2", "b", 900)):
        cluster.node(node, 1)
        cluster.job(job, 0, None, [node], 1, "RUNNING", observed_at=at(until), source="mlperf")
    ends = "job_id, (end_ms - start_ms) // 1000", "intermediate.int_attempts"
    yield
    assert cluster.own(*ends) == [("1", None), ("2", None)]
    cluster.job("2", 0, None, ["b"], 1, "RUNNING", observed_at=at(1100), source="mlperf")
    yield
    assert cluster.own(*ends) == [("1", 100), ("2", None)]

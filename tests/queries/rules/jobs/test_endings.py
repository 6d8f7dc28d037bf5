"""How an attempt ended, where the scheduler's state alone does not say."""

from tests.queries.conftest import durable, steps


def outcome(evidence):
    evidence.store.build()
    rows = evidence.store.read(
        "select outcome, cause, cause_evidence from marts.attempts order by attempt"
    ).rows()
    return rows[0]


def requeued(evidence, exit_code, failure=None):
    evidence.node("a", 1)
    evidence.job("7", 0, 200, ["a"], 1, "REQUEUED", exit_code=exit_code)
    evidence.job("7", 300, 600, ["a"], 1, submit=200, eligible=300)
    reported = [*steps(1, 10, 10), durable(10, 111), *([failure] if failure else [])]
    evidence.events("7", reported, attempt=0)
    evidence.events("7", steps(11, 20, 310), attempt=1)


def test_a_job_that_crashed_and_was_requeued_has_failed(evidence):
    """`requeue-exit` of the recorded Slurm: state REQUEUED, exit code 14:0."""
    requeued(evidence, "14:0")

    assert outcome(evidence)[:2] == ("failed", "FAILED")
    assert evidence.gpu_s()["fault_stall"] == 90


def test_a_job_that_reports_a_crash_and_was_requeued_has_failed(evidence):
    requeued(evidence, "0:0", {"event": "failure", "kind": "nan", "t": 115})

    assert outcome(evidence)[:2] == ("failed", "nan")
    assert evidence.gpu_s()["fault_stall"] == 90


def test_a_job_that_was_requeued_by_the_operator_has_not_failed(evidence):
    reported = {"event": "failure", "kind": "preempted", "t": 115}
    requeued(evidence, "0:0", reported)

    assert outcome(evidence)[0] == "limit"


def test_steps_of_a_run_that_just_stops_stay_at_risk(evidence):
    """Its log has a last line and no ending: whether it saved nobody says."""
    evidence.node("a", 1)
    evidence.job("1", 0, 200, ["a"], 1, "UNKNOWN")
    evidence.job("2", 200, 400, ["a"], 1)
    evidence.events("1", steps(1, 10, 10))

    assert outcome(evidence)[0] == "unknown"
    assert evidence.gpu_s()["at_risk"] == 100


def test_a_followed_log_that_falls_silent_ends_with_its_last_line(evidence):
    """By the evidence of its cluster: 15 minutes later another log there goes on."""
    for node in "ab":
        evidence.node(node, 1)
    silent = {"observed_at": evidence.at(100), "source": "mlperf"}
    evidence.job("1", 0, None, ["a"], 1, "RUNNING", **silent)
    evidence.job("2", 0, None, ["b"], 1, "RUNNING", **{**silent, "observed_at": evidence.at(900)})
    evidence.store.build()
    running = evidence.store.read(
        "select count(*) from intermediate.int_holds where end_ms is null"
    )
    evidence.job("2", 0, None, ["b"], 1, "RUNNING", **{**silent, "observed_at": evidence.at(1100)})
    evidence.store.build()

    ends = evidence.store.read(
        "select job_id, (end_ms - start_ms) // 1000 from intermediate.int_attempts order by 1"
    )
    assert running.item() == 2
    assert ends.rows() == [("1", 100), ("2", None)]

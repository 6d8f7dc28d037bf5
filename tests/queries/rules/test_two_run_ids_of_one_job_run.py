"""Two sources that name one job run differently: RUN_ID in events, Slurm's number in a log."""

from __future__ import annotations

import pytest
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build

JOB = "7"
RUN = "exp-7"
LOST = ("lost_work", "fault_stall", "failed_without_progress")


@pytest.fixture
def one_job(evidence):
    evidence.node("a", 2)
    evidence.job(JOB, 0, 300, ["a"], 2, job_name="train.sh")
    return evidence


def attempts(evidence):
    evidence.store.build()
    return evidence.store.read(
        """select run_id, attempt, (start_ms - $1) // 1000, (end_ms - $1) // 1000, outcome
        from intermediate.int_attempts order by all""",
        [1_800_000_000_000],
    ).rows()


def one_life(job_events):
    """Return what events and log say of a job that runs through."""
    steps = job_events.steps(1, 27, 10)
    return [{"event": "job.start", "t": 4}, *steps], [
        {"event": "job.start", "t": 2}, *job_events.printed(steps)[::4]
    ]  # fmt: skip


def two_lives(job_events):
    """Return what events and log say of a gang that is restarted from its save of step 8."""
    first, second = job_events.steps(1, 11, 10), job_events.steps(9, 22, 140)
    events = [
        *({**row, "attempt": 0} for row in [{"event": "job.start", "t": 4}, *first]),
        {**job_events.durable(8, 92), "attempt": 0},
        *({**row, "attempt": 1} for row in [{"event": "job.start", "t": 130}, *second]),
    ]
    log = [
        {"event": "job.start", "t": 2}, *job_events.printed(first),
        {"event": "job.start", "t": 128}, *job_events.printed(second),
    ]  # fmt: skip
    return events, log


@pytest.mark.parametrize("order", ["same build", "events first", "log first", "log late"])
@pytest.mark.parametrize("lives", [one_life, two_lives])
def test_a_log_under_slurms_number_changes_nothing(new_evidence, one_job, job_events, lives, order):
    events, log = lives(job_events)
    alone = new_evidence()
    alone.node("a", 2)
    alone.job(JOB, 0, 300, ["a"], 2, job_name="train.sh")
    alone.events(RUN, events)
    expected = alone.gpu_s(), attempts(alone)

    if order == "log first":
        one_job.log(JOB, log)
        one_job.store.build()
    one_job.events(RUN, events)
    if order == "events first":
        one_job.store.build()
    if order == "log late":
        one_job.store.build()
        one_job.job("8", 400, 500, ["a"], 2)
        alone.job("8", 400, 500, ["a"], 2)
        expected = alone.gpu_s(), attempts(alone)
        one_job.log(JOB, log[:3])
        one_job.store.build()
        one_job.log(JOB, log[3:])
    elif order != "log first":
        one_job.log(JOB, log)

    assert (one_job.gpu_s(), attempts(one_job)) == expected
    assert_equals_full_build(one_job)


def test_a_restart_in_both_sources_gives_two_attempts(one_job, job_events):
    events, log = two_lives(job_events)
    one_job.events(RUN, events)
    one_job.log(JOB, log)

    assert attempts(one_job) == [(RUN, 0, 0, 130, "failed"), (RUN, 1, 130, 300, "ok")]
    found = one_job.gpu_s()
    assert (found["step_unsplit"], found["lost_work"]) == (2 * (80 + 140), 2 * 30)


def test_a_log_that_sees_no_restart_is_of_both_attempts(one_job, job_events):
    events, _ = two_lives(job_events)
    one_job.events(RUN, events)
    expected = one_job.gpu_s()

    one_job.log(JOB, [{"event": "step", "step": k, "t": 10 * k + 5, "tokens": 5.0} for k in (3, 9)])
    one_job.log(JOB, [{"event": "step", "step": 20, "t": 265, "tokens": 5.0}])

    assert one_job.gpu_s() == expected
    assert_equals_full_build(one_job)
    assert one_job.store.read(
        "select attempt, sum(tokens) from marts.train_steps group by all order by all"
    ).rows() == [(0, 10.0), (1, 5.0)]


@pytest.mark.parametrize("is_log_first", [False, True])
def test_job_runs_stay_attempts_of_one_run(one_job, job_events, is_log_first):
    """Their logs, each under its own number, make no runs of them."""
    one_job.job("8", 400, 600, ["a"], 2, job_name="train.sh")
    first, second = job_events.steps(1, 27, 10), job_events.steps(28, 40, 420)
    reported = [
        lambda: one_job.events(RUN, first, attempt=0),
        lambda: one_job.events(RUN, second, attempt=1),
        lambda: one_job.log(JOB, [{"event": "job.start", "t": 1}, *job_events.printed(first)]),
        lambda: one_job.log("8", [{"event": "job.start", "t": 401}, *job_events.printed(second)]),
    ]
    for tell_more in reversed(reported) if is_log_first else reported:
        tell_more()
        one_job.store.build()

    assert attempts(one_job) == [(RUN, 0, 0, 300, "ok"), (RUN, 1, 400, 600, "ok")]
    assert_equals_full_build(one_job)


def test_a_failure_that_only_the_log_reports_is_the_attempts(one_job, job_events):
    one_job.job("9", 400, 600, ["a"], 2, "REQUEUED", job_name="train.sh")
    one_job.events("exp-9", job_events.steps(1, 10, 410))
    one_job.log("9", [{"event": "failure", "kind": "oom", "t": 515}])

    assert [row for row in attempts(one_job) if row[0] == "exp-9"] == [
        ("exp-9", 0, 400, 600, "failed")
    ]
    found = one_job.store.read("select kind from intermediate.int_reported_failures").rows()
    assert found == [("oom",)]
    assert_equals_full_build(one_job)


def test_a_job_that_runs_two_trainings_has_two_attempts(one_job, job_events):
    one_job.events("pretrain", job_events.steps(1, 10, 10))
    one_job.events("finetune", job_events.steps(1, 10, 150))
    log = [
        *job_events.printed(job_events.steps(1, 10, 10)),
        *job_events.printed(job_events.steps(1, 10, 150)),
    ]
    expected = attempts(one_job)

    one_job.log(JOB, log)

    assert attempts(one_job) == expected
    assert [row[2:] for row in expected] == [(0, 150, "failed"), (150, 300, "ok")]


def test_a_training_that_only_the_log_reports_is_an_attempt(one_job, job_events):
    log = [{"event": "job.start", "t": 2}, *job_events.printed(job_events.steps(1, 8, 10))]
    one_job.log(JOB, log)
    one_job.events(RUN, [{"event": "job.start", "t": 150}, *job_events.steps(1, 10, 160)])

    assert [row[2:] for row in attempts(one_job)] == [(0, 150, "failed"), (150, 300, "ok")]
    assert_equals_full_build(one_job)


def test_a_save_that_finishes_after_the_next_start_joins_nothing(one_job, job_events):
    log = [*job_events.printed(job_events.steps(1, 8, 10)), job_events.durable(8, 155)]
    one_job.log(JOB, log)
    one_job.events(RUN, [{"event": "job.start", "t": 150}, *job_events.steps(1, 10, 160)])

    assert [row[2:] for row in attempts(one_job)] == [(0, 150, "failed"), (150, 300, "ok")]


def test_a_stray_save_of_the_job_joins_no_training_that_only_the_log_reports(one_job, job_events):
    one_job.events(RUN, job_events.steps(1, 9, 10), attempt=0)
    one_job.events("another", [job_events.durable(9, 220)], attempt=0)
    before = attempts(one_job)
    one_job.log(
        JOB, [{"event": "job.start", "t": 150}, *job_events.printed(job_events.steps(1, 12, 160))]
    )

    assert [row[2:] for row in before] == [(0, 220, "failed"), (220, 300, "ok")]
    assert [row[2:4] for row in attempts(one_job)] == [(0, 150), (150, 220), (220, 300)]


@pytest.mark.parametrize("ahead", ["log", "events"])
def test_events_that_one_source_reports_first_continue_the_life(one_job, job_events, ahead):
    """A log that is followed is often a few steps ahead of events that are still in a buffer."""
    steps = job_events.steps(1, 27, 10)
    early, late = steps[:10], steps[14:]
    one_job.events(RUN, early if ahead == "log" else late)
    one_job.log(JOB, job_events.printed(late if ahead == "log" else early))

    assert [row[2:] for row in attempts(one_job)] == [(0, 300, "ok")]
    found = one_job.gpu_s()
    assert all(name not in found for name in LOST)
    assert_equals_full_build(one_job)


def test_events_that_report_no_steps_begin_no_attempt_beside_a_log_that_does(one_job, job_events):
    steps = job_events.printed(job_events.steps(1, 27, 10))
    one_job.log(JOB, steps)
    alone = one_job.gpu_s()

    one_job.events(RUN, [{"event": "job.end", "t": 290}])

    assert one_job.gpu_s() == alone
    assert attempts(one_job) == [(RUN, 0, 0, 300, "ok")]
    assert_equals_full_build(one_job)


def test_a_log_with_a_clock_that_is_hours_off_begins_no_attempt(one_job, job_events):
    steps = job_events.steps(1, 27, 10)
    one_job.events(RUN, steps)
    one_job.log(JOB, [{**row, "t": row["t"] + 7200} for row in job_events.printed(steps)])

    assert attempts(one_job) == [(RUN, 0, 0, 300, "ok")]
    assert all(name not in one_job.gpu_s() for name in LOST)


def test_events_whose_clock_puts_them_after_the_job_begin_no_attempt_beside_its_log(
    evidence, job_events
):
    evidence.node("a", 2)
    evidence.job(JOB, 0, 300, ["a"], 2, job_name="train.sh")
    steps = job_events.steps(1, 27, 10)
    evidence.log(JOB, job_events.printed(steps))
    evidence.events("train.sh", [{**row, "t": row["t"] + 400} for row in steps])

    assert attempts(evidence) == [("train.sh", 0, 0, 300, "ok")]
    assert all(name not in evidence.gpu_s() for name in LOST)
    assert_equals_full_build(evidence)


def test_a_log_that_turns_out_to_be_of_another_job_leaves_no_trace(one_job, job_events):
    """The name of its job is known only later: until then the host decides."""
    steps = job_events.steps(1, 27, 10)
    one_job.events(RUN, steps)
    one_job.log("late", job_events.printed(steps), host="a")
    one_job.store.build()

    one_job.job("late", 100, 250, ["a"], 0)

    assert_equals_full_build(one_job)


def test_a_log_under_another_name_whose_clock_is_off_is_named_with_its_offset(evidence, job_events):
    """Of jobs on other nodes, one starts again and the others say nothing twice."""
    for job, node in enumerate(("a", "b", "d", "e"), start=7):
        evidence.node(node, 2)
        evidence.job(str(job), 0, 1000, [node], 2, job_name="train.sh")
    steps = job_events.steps(1, 27, 10)
    evidence.events("exp-7", steps, host="a")
    evidence.log("7", [{**row, "t": row["t"] + 400} for row in job_events.printed(steps)[::2]])
    events, log = two_lives(job_events)
    evidence.events("exp-8", events, host="b")
    evidence.log("8", log)
    evidence.events("exp-9", job_events.steps(1, 18, 10), host="d")  # another training
    evidence.log("9", job_events.printed(job_events.steps(1, 27, 410)))
    evidence.events("exp-10", steps, host="e")  # the same one again, at its own pace
    again = [{**row, "t": 400 + 1.3 * row["t"]} for row in steps]
    evidence.log("10", job_events.printed(again))
    evidence.store.build()

    found = evidence.store.read(
        "select n, example from marts.data_quality where kind = 'clocks that disagree'"
    ).rows()
    named = "7 (text log) +400 s from exp-7 (job events)"
    assert found == [(1, f"c/7@{1_800_000_000}: {named}")]

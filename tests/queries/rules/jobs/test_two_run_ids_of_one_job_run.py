"""Two sources that name one job run differently: RUN_ID in events, Slurm's number in a log."""

import pytest
from tests.queries.conftest import built_together, durable, printed, steps

JOB = "7"
RUN = "exp-7"
LOST = ("lost_work", "fault_stall", "failed_without_progress")


def one_job(evidence):
    evidence.node("a", 2)
    evidence.job(JOB, 0, 300, ["a"], 2, job_name="train.sh")


def attempts(evidence):
    return evidence.store.read(
        """select run_id, attempt, (start_ms - $1) // 1000, (end_ms - $1) // 1000, outcome
        from intermediate.int_attempts where cluster = $2 order by all""",
        [1_800_000_000_000, evidence.name],
    ).rows()


def one_life():
    """Return what events and log say of a job that runs through."""
    ran = steps(1, 27, 10)
    return [{"event": "job.start", "t": 4}, *ran], [
        {"event": "job.start", "t": 2}, *printed(ran)[::4]
    ]  # fmt: skip


def two_lives():
    """Return what events and log say of a gang that is restarted from its save of step 8."""
    first, second = steps(1, 11, 10), steps(9, 22, 140)
    events = [
        *({**row, "attempt": 0} for row in [{"event": "job.start", "t": 4}, *first]),
        {**durable(8, 92), "attempt": 0},
        *({**row, "attempt": 1} for row in [{"event": "job.start", "t": 130}, *second]),
    ]
    log = [
        {"event": "job.start", "t": 2}, *printed(first),
        {"event": "job.start", "t": 128}, *printed(second),
    ]  # fmt: skip
    return events, log


# what the ledger says of the events alone: GPU-seconds and attempts
OF_EVENTS_ALONE = {
    one_life: ({"startup": 20, "step_unsplit": 540, "teardown": 40}, [(RUN, 0, 0, 300, "ok")]),
    two_lives: (
        {"startup": 40, "step_unsplit": 440, "lost_work": 60, "fault_stall": 20, "teardown": 40},
        [(RUN, 0, 0, 130, "failed"), (RUN, 1, 130, 300, "ok")],
    ),
}
LATER_JOB = {"free_unknown": 200, "unknown": 200}, [("8", 0, 400, 500, "ok")]


@pytest.mark.parametrize("order", ["same build", "events first", "log first", "log late"])
@pytest.mark.parametrize("lives", [one_life, two_lives])
@built_together(builds=3)
def test_a_log_under_slurms_number_changes_nothing(cluster, lives, order):
    one_job(cluster)
    events, log = lives()
    gpu_s, lived = OF_EVENTS_ALONE[lives]
    if order == "log late":
        gpu_s, lived = gpu_s | LATER_JOB[0], LATER_JOB[1] + lived

    if order == "log first":
        cluster.log(JOB, log)
        yield
    cluster.events(RUN, events)
    if order == "events first":
        yield
    if order == "log late":
        yield
        cluster.job("8", 400, 500, ["a"], 2)
        cluster.log(JOB, log[:3])
        yield
        cluster.log(JOB, log[3:])
    elif order != "log first":
        cluster.log(JOB, log)
    yield
    assert (cluster.gpu_s(), attempts(cluster)) == (gpu_s, lived)


@built_together(builds=2)
def test_a_log_that_sees_no_restart_is_of_both_attempts(cluster):
    one_job(cluster)
    events, _ = two_lives()
    cluster.events(RUN, events)
    yield
    expected = cluster.gpu_s()

    cluster.log(JOB, [{"event": "step", "step": k, "t": 10 * k + 5, "tokens": 5.0} for k in (3, 9)])
    cluster.log(JOB, [{"event": "step", "step": 20, "t": 265, "tokens": 5.0}])
    yield
    assert cluster.gpu_s() == expected
    assert cluster.read(
        f"""select attempt, sum(tokens) from marts.train_steps
        where run_key = '{cluster.name}/{RUN}' group by all order by all"""
    ).rows() == [(0, 10.0), (1, 5.0)]


@pytest.mark.parametrize("is_log_first", [False, True])
@built_together(builds=3)
def test_job_runs_stay_attempts_of_one_run(cluster, is_log_first):
    """Their logs, each under its own number, make no runs of them."""
    one_job(cluster)
    cluster.job("8", 400, 600, ["a"], 2, job_name="train.sh")
    first, second = steps(1, 27, 10), steps(28, 40, 420)
    reported = [
        lambda: cluster.events(RUN, first, attempt=0),
        lambda: cluster.events(RUN, second, attempt=1),
        lambda: cluster.log(JOB, [{"event": "job.start", "t": 1}, *printed(first)]),
        lambda: cluster.log("8", [{"event": "job.start", "t": 401}, *printed(second)]),
    ]
    for number, load in enumerate(reversed(reported) if is_log_first else reported):
        load()
        if number > 0:
            yield
    assert attempts(cluster) == [(RUN, 0, 0, 300, "ok"), (RUN, 1, 400, 600, "ok")]


@built_together
def test_a_failure_that_only_the_log_reports_is_the_attempts(cluster):
    one_job(cluster)
    cluster.job("9", 400, 600, ["a"], 2, "REQUEUED", job_name="train.sh")
    cluster.events("exp-9", steps(1, 10, 410))
    cluster.log("9", [{"event": "failure", "kind": "oom", "t": 515}])
    yield
    assert [row for row in attempts(cluster) if row[0] == "exp-9"] == [
        ("exp-9", 0, 400, 600, "failed")
    ]
    found = cluster.store.read(
        "select kind from intermediate.int_reported_failures where starts_with(attempt_key, $1)",
        [f"{cluster.name}/"],
    ).rows()
    assert found == [("oom",)]


@built_together(builds=2)
def test_a_job_that_runs_two_trainings_has_two_attempts(cluster):
    one_job(cluster)
    cluster.events("pretrain", steps(1, 10, 10))
    cluster.events("finetune", steps(1, 10, 150))
    log = [*printed(steps(1, 10, 10)), *printed(steps(1, 10, 150))]
    yield
    expected = attempts(cluster)

    cluster.log(JOB, log)
    yield
    assert attempts(cluster) == expected
    assert [row[2:] for row in expected] == [(0, 150, "failed"), (150, 300, "ok")]


@pytest.mark.parametrize(
    "log",
    [
        [{"event": "job.start", "t": 2}, *printed(steps(1, 8, 10))],
        [*printed(steps(1, 8, 10)), durable(8, 155)],
    ],
    ids=["with its start", "with a save that finishes after the next start"],
)
@built_together
def test_a_training_that_only_the_log_reports_is_an_attempt(cluster, log):
    one_job(cluster)
    cluster.log(JOB, log)
    cluster.events(RUN, [{"event": "job.start", "t": 150}, *steps(1, 10, 160)])
    yield
    assert [row[2:] for row in attempts(cluster)] == [(0, 150, "failed"), (150, 300, "ok")]


@built_together(builds=2)
def test_a_stray_save_of_the_job_joins_no_training_that_only_the_log_reports(cluster):
    one_job(cluster)
    cluster.events(RUN, steps(1, 9, 10), attempt=0)
    cluster.events("another", [durable(9, 220)], attempt=0)
    yield
    before = attempts(cluster)
    cluster.log(JOB, [{"event": "job.start", "t": 150}, *printed(steps(1, 12, 160))])
    yield
    assert [row[2:] for row in before] == [(0, 220, "failed"), (220, 300, "ok")]
    assert [row[2:4] for row in attempts(cluster)] == [(0, 150), (150, 220), (220, 300)]


@pytest.mark.parametrize("ahead", ["log", "events"])
@built_together
def test_events_that_one_source_reports_first_continue_the_life(cluster, ahead):
    """A log that is followed is often a few steps ahead of events that are still in a buffer."""
    one_job(cluster)
    ran = steps(1, 27, 10)
    early, late = ran[:10], ran[14:]
    cluster.events(RUN, early if ahead == "log" else late)
    cluster.log(JOB, printed(late if ahead == "log" else early))
    yield
    assert [row[2:] for row in attempts(cluster)] == [(0, 300, "ok")]
    found = cluster.gpu_s()
    assert all(name not in found for name in LOST)


@built_together(builds=2)
def test_events_that_report_no_steps_begin_no_attempt_beside_a_log_that_does(cluster):
    one_job(cluster)
    ran = printed(steps(1, 27, 10))
    cluster.log(JOB, ran)
    yield
    alone = cluster.gpu_s()

    cluster.events(RUN, [{"event": "job.end", "t": 290}])
    yield
    assert cluster.gpu_s() == alone
    assert attempts(cluster) == [(RUN, 0, 0, 300, "ok")]


@pytest.mark.parametrize(
    ("run", "events_off_s", "log_off_s"),
    [(RUN, 0, 7200), ("train.sh", 400, 0)],
    ids=["a log hours later", "events after the job"],
)
@built_together
def test_a_clock_that_is_off_begins_no_attempt(cluster, run, events_off_s, log_off_s):
    one_job(cluster)
    ran = steps(1, 27, 10)
    cluster.events(run, [{**row, "t": row["t"] + events_off_s} for row in ran])
    cluster.log(JOB, [{**row, "t": row["t"] + log_off_s} for row in printed(ran)])
    yield
    assert attempts(cluster) == [(run, 0, 0, 300, "ok")]
    assert all(name not in cluster.gpu_s() for name in LOST)


@built_together(builds=2)
def test_a_log_that_turns_out_to_be_of_another_job_leaves_no_trace(cluster):
    """The name of its job is known only later: until then the host decides."""
    one_job(cluster)
    ran = steps(1, 27, 10)
    cluster.events(RUN, ran)
    cluster.log("late", printed(ran), host="a")
    yield
    cluster.job("late", 100, 250, ["a"], 0)
    yield
    assert (RUN, 0, 0, 300, "ok") in attempts(cluster)

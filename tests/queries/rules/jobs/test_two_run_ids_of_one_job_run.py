"""Two sources that name one job run differently: RUN_ID in events, Slurm's number in a log."""

import pytest
from tests.queries.conftest import START_MS, built_in, durable, each, printed, steps

JOB = "7"
RUN = "exp-7"
LOST = ("lost_work", "fault_stall", "failed_without_progress")


def one_job(evidence):
    evidence.node("a", 2)
    evidence.job(JOB, 0, 300, ["a"], 2, job_name="train.sh")


def attempts(evidence):
    columns = f"run_id, attempt, (start_ms - {START_MS}) // 1000, (end_ms - {START_MS}) // 1000"
    return evidence.own(f"{columns}, outcome", "intermediate.int_attempts")


def one_life():
    """Return what events and log say of a job that runs through."""
    ran = steps(1, 27, 10)
    return [{"event": "job.start", "t": 4}, *ran], [
        {"event": "job.start", "t": 2}, *printed(ran)[::4]]  # fmt: skip


def two_lives():
    """Return what events and log say of a gang that is restarted from its save of step 8."""
    first, second = steps(1, 11, 10), steps(9, 22, 140)
    events = [
        *({**row, "attempt": 0} for row in [{"event": "job.start", "t": 4}, *first]),
        {**durable(8, 92), "attempt": 0},
        *({**row, "attempt": 1} for row in [{"event": "job.start", "t": 130}, *second]),
    ]
    log = [{"event": "job.start", "t": 2}, *printed(first), {"event": "job.start", "t": 128},
           *printed(second)]  # fmt: skip
    return events, log


# what the ledger says of the events alone: GPU-seconds and attempts
OF_EVENTS_ALONE = {
    one_life: ({"startup": 20, "step_unsplit": 540, "teardown": 40}, [(RUN, 0, 0, 300, "ok")]),
    two_lives: ({"startup": 40, "step_unsplit": 440, "lost_work": 60, "fault_stall": 20,
                 "teardown": 40}, [(RUN, 0, 0, 130, "failed"), (RUN, 1, 130, 300, "ok")]),
}  # fmt: skip
LATER_JOB = {"free_unknown": 200, "unknown": 200}, [("8", 0, 400, 500, "ok")]


@pytest.mark.parametrize("order", ["same build", "events first", "log first", "log late"])
@pytest.mark.parametrize("lives", [one_life, two_lives])
@built_in(3)
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
@built_in(3)
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


def test_a_failure_that_only_the_log_reports_is_the_attempts(cluster):
    one_job(cluster)
    cluster.job("9", 400, 600, ["a"], 2, "REQUEUED", job_name="train.sh")
    cluster.events("exp-9", steps(1, 10, 410))
    cluster.log("9", [{"event": "failure", "kind": "oom", "t": 515}])
    yield
    assert [row[1:] for row in attempts(cluster) if row[0] == "exp-9"] == [(0, 400, 600, "failed")]
    kinds = f"""select kind from intermediate.int_reported_failures
        where starts_with(attempt_key, '{cluster.name}/')"""
    assert cluster.read(kinds).rows() == [("oom",)]


RAN = steps(1, 27, 10)
TWO_TRAININGS = [(0, 150, "failed"), (150, 300, "ok")]


def begun(second):
    return {"event": "job.start", "t": second}


def later(rows, second):
    return [{**row, "t": row["t"] + second} for row in rows]


# what it shows: what is loaded before the first and the second build, attempts of the job run
@each({
    "a job that runs two trainings has two attempts": (
        lambda c: [c.events("pretrain", steps(1, 10, 10)), c.events("finetune", steps(1, 10, 150))],
        lambda c: c.log(JOB, [*printed(steps(1, 10, 10)), *printed(steps(1, 10, 150))]),
        TWO_TRAININGS),
    "a training that only the log reports is an attempt, with its start": (
        lambda c: c.log(JOB, [begun(2), *printed(steps(1, 8, 10))]),
        lambda c: c.events(RUN, [begun(150), *steps(1, 10, 160)]), TWO_TRAININGS),
    "the same with a save that finishes after the next start": (
        lambda c: c.log(JOB, [*printed(steps(1, 8, 10)), durable(8, 155)]),
        lambda c: c.events(RUN, [begun(150), *steps(1, 10, 160)]), TWO_TRAININGS),
    "a stray save of the job joins no training that only the log reports": (
        lambda c: [c.events(RUN, steps(1, 9, 10), attempt=0),
                   c.events("another", [durable(9, 220)], attempt=0)],
        lambda c: c.log(JOB, [begun(150), *printed(steps(1, 12, 160))]),
        [(0, 150, "failed"), (150, 220, "failed"), (220, 300, "ok")]),
    # a log that is followed is often a few steps ahead of events that are still in a buffer
    "a log that is ahead continues the life": (
        lambda c: c.events(RUN, RAN[:10]), lambda c: c.log(JOB, printed(RAN[14:])),
        [(0, 300, "ok")]),
    "events that are ahead continue the life": (
        lambda c: c.events(RUN, RAN[14:]), lambda c: c.log(JOB, printed(RAN[:10])),
        [(0, 300, "ok")]),
    "events that report no steps begin no attempt beside a log that does": (
        lambda c: c.log(JOB, printed(RAN)),
        lambda c: c.events(RUN, [{"event": "job.end", "t": 290}]), [(0, 300, "ok")]),
    "the clock of a log that is hours off begins no attempt": (
        lambda c: c.events(RUN, RAN), lambda c: c.log(JOB, later(printed(RAN), 7200)),
        [(0, 300, "ok")]),
    "the clock of events after the job begins no attempt": (
        lambda c: c.events("train.sh", later(RAN, 400)), lambda c: c.log(JOB, printed(RAN)),
        [(0, 300, "ok")]),
    # the name of its job is known only later: until then the host decides
    "a log that turns out to be of another job leaves no trace": (
        lambda c: [c.events(RUN, RAN), c.log("late", printed(RAN), host="a")],
        lambda c: c.job("late", 100, 250, ["a"], 0), [(0, 300, "ok")]),
})  # fmt: skip
def test_lives_of_one_job_run(cluster, first, second, expected):
    one_job(cluster)
    first(cluster)
    yield
    second(cluster)
    yield
    assert [row[2:] for row in attempts(cluster) if row[0] != "late"] == expected
    if len(expected) == 1:
        assert all(name not in cluster.gpu_s() for name in LOST)

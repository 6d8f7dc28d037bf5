"""What a job says of itself, rule by rule, on the least evidence."""

import pytest
from tests.queries.conftest import built_together, durable, phase, steps


def event(name, second, **more):
    return {"event": name, "t": second, **more}


WAITS = {"straggler_s": 1.0, "comm_s": 1.0}
# what it shows: (start, end, state) of the job run on the only GPU, its events, GPU-seconds
ONE_JOB_RUN = {
    "saving is not saved": (
        (0, 100, "FAILED"),
        [event("job.start", 1), *steps(1, 5, 10), phase("ckpt_save", 60, 70), durable(3, 41),
         *steps(6, 7, 70)],
        {"startup": 10, "step_unsplit": 30, "lost_work": 40, "checkpoint_save": 10,
         "fault_stall": 10},
    ),
    "steps of a running attempt after its last save are at risk": (
        (0, None, "RUNNING"),
        [*steps(1, 5, 10), durable(3, 40)],
        {"startup": 10, "step_unsplit": 30, "at_risk": 20},
    ),
    "a job that saves but never reports durable saves is not booked as lost": (
        (0, 100, "FAILED"),
        [*steps(1, 5, 10), phase("ckpt_save", 60, 70)],
        {"startup": 10, "at_risk": 50, "checkpoint_save": 10, "fault_stall": 30},
    ),
    "a timed out attempt tears down for three steps and stalls after": (
        (0, 200, "TIMEOUT"),
        [*steps(1, 10, 0), durable(10, 100)],
        {"step_unsplit": 100, "teardown": 30, "fault_stall": 70},
    ),
    "restore inside startup is restore": (
        (0, 60, "COMPLETED"),
        [phase("init", 5, 45), phase("restore", 20, 30), *steps(1, 1, 50)],
        {"startup": 40, "restore": 10, "step_unsplit": 10},
    ),
    "of two phases reported from before the hold the later one counts": (
        (100, 160, "COMPLETED"),
        [phase("init", 60, 120), phase("restore", 80, 140), *steps(1, 2, 140)],
        {"free_unknown": 100, "restore": 40, "step_unsplit": 20},
    ),
    "a phase that never ends ends with the next event": (
        (0, 100, "COMPLETED"),
        [*steps(1, 3, 0), event("phase.start", 30, phase="eval"), *steps(4, 9, 40)],
        {"step_unsplit": 80, "other_declared": 20},
    ),
    "the first step's excess is compilation": (
        (0, 170, "COMPLETED"),
        [*steps(1, 1, 0, 60), *steps(2, 12, 60)],
        {"startup": 50, "step_unsplit": 120},
    ),
    "a step is productive only where waiting and communication were measured": (
        (0, 100, "COMPLETED"),
        [*steps(1, 5, 0, **WAITS), *steps(6, 10, 50, comm_s=1.0)],
        {"straggler_wait": 5, "exposed_comm": 10, "productive": 40, "step_unsplit": 45},
    ),
    "events without a run id find the only hold that fits": (
        (0, 100, "COMPLETED"),
        [{**step, "run_id": ""} for step in steps(1, 8, 10)],
        {"startup": 10, "step_unsplit": 80, "teardown": 10},
    ),
    "unnumbered attempts begin with their start": (
        (0, 300, "COMPLETED"),
        [{**e, "attempt": None} for e in [
            event("job.start", 1), *steps(1, 9, 10), durable(5, 60),
            event("job.start", 150), *steps(6, 15, 160),
        ]],
        {"startup": 20, "step_unsplit": 150, "lost_work": 40, "fault_stall": 50, "teardown": 40},
    ),
    "a clock that is set back by some steps begins no attempt": (
        (0, 100, "COMPLETED"),
        [{**e, "attempt": None} for e in [*steps(1, 5, 0), *steps(6, 9, 25)]],
        {"startup": 5, "step_unsplit": 60, "teardown": 35},
    ),
    "waits for data under 10 ms stay in the step": (
        (0, 100, "COMPLETED"), steps(1, 10, 0, data_s=0.009), {"step_unsplit": 100},
    ),
    "waits for data of 10 ms are stalls": (
        (0, 100, "COMPLETED"),
        steps(1, 10, 0, data_s=0.010),
        {"data_stall": 0.1, "step_unsplit": 99.9},
    ),
    "waits for data are measured by the median step and not by their own": (
        (0, 2.05, "COMPLETED"),
        [*steps(1, 9, 0, 0.1), *steps(10, 10, 0.9, 0.15, data_s=0.006),
         *steps(11, 20, 1.05, 0.1)],
        {"data_stall": 0.006, "step_unsplit": 2.044},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("job", "events", "expected"), ONE_JOB_RUN.values(), ids=ONE_JOB_RUN.keys()
)
@built_together
def test_ledger_of_one_job_run(cluster, job, events, expected):
    start, end, state = job
    cluster.job_on_a_node("1", start, end, 1, state)
    cluster.events("1", events)
    yield
    assert cluster.gpu_s() == expected


# what it shows: start, end, GPUs and state of the job runs of run `r`, events by attempt, GPU-s
ONE_RUN = {
    "steps that a later attempt did again were lost whatever was saved": (
        [(0, 100, 1, "FAILED"), (100, 200, 1, "COMPLETED")],
        [[*steps(1, 8, 10), durable(8, 90)], steps(5, 12, 110)],
        {"lost_work": 40, "step_unsplit": 40 + 80},
    ),
    # steps 1 and 2 of the first attempt: the third one went on from their second execution
    "a short restart at a low step loses only what it did again": (
        [(0, 100, 1, "FAILED"), (100, 200, 1, "FAILED"), (200, 300, 1, "COMPLETED")],
        [[*steps(1, 8, 10), durable(8, 90)], steps(1, 2, 110), steps(9, 16, 210)],
        {"lost_work": 20, "step_unsplit": 60 + 20 + 80},
    ),
    "a run that shrank and kept all its time has full ETTR": (
        [(0, 100, 4, "COMPLETED"), (100, 200, 2, "COMPLETED")],
        [[*steps(1, 10, 0), durable(10, 100)], steps(11, 20, 100)],
        {"step_unsplit": 400 + 200},
    ),
}


@pytest.mark.parametrize(("jobs", "attempts", "expected"), ONE_RUN.values(), ids=ONE_RUN.keys())
@built_together
def test_ledger_of_a_run_of_several_job_runs(cluster, jobs, attempts, expected):
    cluster.node("a", max(gpus for _, _, gpus, _ in jobs))
    for number, ((start, end, gpus, state), events) in enumerate(zip(jobs, attempts, strict=True)):
        cluster.job(str(number), start, end, ["a"], gpus, state, job_name="r")
        cluster.events("r", events, attempt=number)
    yield
    assert {category: cluster.gpu_s().get(category) for category in expected} == expected
    if "lost_work" not in expected:
        assert cluster.read("select ettr_ratio from marts.runs").item() == pytest.approx(1)


@built_together
def test_unnumbered_attempts_of_a_requeued_job_belong_to_their_own_job_runs(cluster):
    cluster.node("a", 1)
    cluster.node("b", 1)
    cluster.job("7", 0, 100, ["a"], 1, "NODE_FAIL")
    cluster.job("7", 200, 300, ["b"], 1, submit=150)
    first = [event("job.start", 1), *steps(1, 8, 10), durable(8, 90)]
    cluster.events("7", first, attempt=None, host="a")
    cluster.events("7", [event("job.start", 201), *steps(9, 16, 210)], attempt=None, host="b")
    yield
    assert cluster.gpu_s()["step_unsplit"] == 160

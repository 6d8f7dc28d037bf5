"""Events that a job writes before its hold begins or after it ends stay with that job."""

import pytest
from tests.queries.conftest import durable, each, steps
from tests.queries.rules.jobs.test_rules_of_jobs import event

from goodput_queries.scope import Scope


def gpu_s_of(evidence, run):
    sql = "select category, sum(gpu_ms) / 1000 from marts.ledger_scoped group by category"
    return dict(evidence.read(sql, Scope(run=f"{evidence.name}/{run}")).rows())


@pytest.mark.parametrize("attempt", [None, 0])
@pytest.mark.parametrize("late", [-0.1, 12])
def test_a_save_that_completes_after_the_hold_keeps_the_jobs_own_steps(cluster, late, attempt):
    """Of two jobs on a node the first hits its limit at 600 s and saves as it ends."""
    cluster.node("a", 2)
    cluster.job("1", 0, 600, ["a"], 1, "TIMEOUT", user_name="ann")
    cluster.job("2", 1, 3600, ["a"], 1, user_name="bob")
    ann = [event("job.start", 2), *steps(1, 58, 10), durable(58, 600 + late)]
    cluster.events("1", ann, attempt=attempt)
    cluster.events("2", [event("job.start", 5), *steps(1, 350, 20)], attempt=attempt)
    yield
    assert gpu_s_of(cluster, "1")["step_unsplit"] == 580
    assert gpu_s_of(cluster, "2") == {"startup": 19, "step_unsplit": 3500, "teardown": 80}


@pytest.mark.parametrize("late", [5, 15, 400])
def test_a_save_that_completes_while_the_requeued_job_starts_keeps_the_steps_before(cluster, late):
    cluster.job_on_a_node("1", 0, 600, 1, "NODE_FAIL")
    cluster.job("1", 610, 1200, ["a"], 1, submit=600)
    reported = [event("job.start", 2), *steps(1, 50, 10), durable(50, 600 + late)]
    cluster.events("1", reported, attempt=None)
    yield
    found = cluster.gpu_s()

    assert (found["startup"], found["step_unsplit"], found["fault_stall"]) == (10, 500, 90)
    assert "failed_without_progress" not in found


def test_a_save_of_an_attempt_that_the_requeued_job_has_not_reached_is_none_of_it(cluster):
    cluster.job_on_a_node("1", 0, 600, 1, "NODE_FAIL")
    cluster.job("1", 610, 1200, ["a"], 1, submit=600)
    cluster.events("1", [event("job.start", 2), *steps(1, 20, 10), durable(20, 210)])
    late = durable(50, 640)
    cluster.events("1", [event("job.start", 250), *steps(21, 50, 260), late], attempt=1)
    cluster.events("1", [event("job.start", 615), *steps(51, 100, 650)])
    yield
    assert cluster.gpu_s() == {"startup": 10 + 10 + 40, "step_unsplit": 200 + 300 + 500,
                               "fault_stall": 40 + 40, "teardown": 50,
                               "free_unknown": 10}  # fmt: skip


# what it shows: how much after the first hold its end is reported, when the second job begins
@pytest.mark.parametrize(("attempt", "gpu"), [(None, None), (0, None), (None, "a#0")])
@each({
    "a line just after its hold": (0.9, 605),
    "a line long after its hold": (25, 605),
    "a start before its hold": (-5, 596),
})  # fmt: skip
def test_a_line_off_its_hold_is_of_the_job_that_reports_it(cluster, attempt, gpu, late, start):
    cluster.job_on_a_node("1", 0, 600, 2)
    cluster.job("2", 601, 3600, ["a"], 2)
    of_gpu = {"attempt": attempt, "gpu_uuid": gpu and cluster.gpu(gpu)}
    first = [event("job.start", 1), *steps(1, 58, 10), event("job.end", 600 + late)]
    cluster.events("1", first, **of_gpu)
    second = [event("job.start", start), *steps(1, 290, 620)]
    cluster.events("2", second, **of_gpu)
    yield
    assert gpu_s_of(cluster, "1") == {"startup": 20, "step_unsplit": 1160, "teardown": 20}
    assert gpu_s_of(cluster, "2") == {"startup": 38, "step_unsplit": 5800, "teardown": 160}


@pytest.mark.parametrize("numbers", [(None, None), (0, 1)])
def test_an_attempt_that_failed_before_the_hold_by_a_clock_that_is_behind_is_one(cluster, numbers):
    cluster.node("a", 1)
    cluster.job("1", 10, 600, ["a"], 1)
    failed = {"event": "failure", "kind": "exception", "t": 6}
    cluster.events("1", [event("job.start", 2), failed], attempt=numbers[0])
    cluster.events("1", [event("job.start", 300), *steps(1, 20, 310)], attempt=numbers[1])
    yield
    assert gpu_s_of(cluster, "1") == {"failed_without_progress": 290, "startup": 10,
                                      "step_unsplit": 200, "teardown": 90}  # fmt: skip


@pytest.mark.parametrize("attempt", [None, 1])
def test_a_start_after_the_hold_is_no_further_attempt(cluster, attempt):
    """It proves nothing of the hold: neither a restart nor time beyond it."""
    cluster.job_on_a_node("1", 0, 600, 1)
    cluster.events("1", steps(1, 58, 10), attempt=None if attempt is None else 0)
    cluster.events("1", [event("job.start", 604)], attempt=attempt)
    yield
    assert gpu_s_of(cluster, "1") == {"startup": 10, "step_unsplit": 580, "teardown": 10}
    assert cluster.read("select attempts from marts.runs").rows()[0][0] == 1


def test_all_events_of_a_job_may_lie_behind_its_hold(cluster):
    cluster.job_on_a_node("1", 0, 600, 1, "TIMEOUT")
    cluster.job("2", 601, 3600, ["a"], 1)
    cluster.events("1", [durable(58, 605)], attempt=0)
    cluster.events("2", steps(1, 290, 620))
    yield
    assert gpu_s_of(cluster, "2")["step_unsplit"] == 2900
    lives = cluster.read("select run_id, job_run_key, match from intermediate.int_event_lives")
    assert ("1", f"{cluster.name}/1@1800000000", "job_id") in lives.rows()


STEPS_THAT_TOUCH = [event(name, 10 * step + late, step=step) for step in range(1, 9)
                    for name, late in (("step.start", 0), ("step", 10))]  # fmt: skip
MOMENTARY_SAVE = [  # as logs with a resolution of seconds report short ones
    *(event(f"phase.{end}", 50, phase="ckpt_save") for end in ("start", "end")),
    *steps(1, 8, 10),
]


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "reversed"])
@pytest.mark.parametrize(("reported", "attempt"), [(STEPS_THAT_TOUCH, None), (MOMENTARY_SAVE, 0)],
                         ids=["a step that ends as the next one starts",
                              "a phase that begins and ends in one moment"])  # fmt: skip
def test_events_of_one_moment_in_any_order_leave_nothing_open(cluster, reported, attempt, order):
    cluster.job_on_a_node("1", 0, 100, 1)
    cluster.events("1", reported[::order], attempt=attempt)
    yield
    assert cluster.gpu_s() == {"startup": 10, "step_unsplit": 80, "teardown": 10}
    assert cluster.read("select steps from marts.attempts").item() == 8

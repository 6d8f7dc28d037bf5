"""Which life of its gang an event belongs to, by what the job numbers and what it leaves out."""

import pytest
from tests.queries.conftest import START_MS, at, durable, each, shown_by, steps


def lives(evidence):
    columns = f"job_id, attempt, (start_ms - {START_MS}) // 1000, (end_ms - {START_MS}) // 1000"
    rows = evidence.own(f"{columns}, outcome", "intermediate.int_attempts")
    return sorted(rows, key=lambda row: row[1])


# what it shows: events of the second job run, GPU-seconds
SAVED = [*steps(1, 8, 10), durable(4, 50)]


@each({
    # the restart count of torchrun is 0 again after a requeue
    "with its steps": (SAVED, steps(5, 18, 160), {"lost_work": 40, "step_unsplit": 40 + 140}),
    # within a second of the job run's start, by which clocks differ: a start says what it is
    "that only starts": ([{"event": "job.start", "t": 1}, *steps(1, 8, 10)],
                         [{"event": "job.start", "t": 151}, {"event": "job.end", "t": 153}], {}),
})  # fmt: skip
def test_a_number_that_each_job_run_restarts_names_two_lives(cluster, first, second, expected):
    cluster.job_on_a_node("7", 0, 100, 1, "FAILED", job_name="r")
    cluster.job("8", 150, 300, ["a"], 1, job_name="r", cpus=16)
    cluster.events("r", first, attempt=0)
    cluster.events("r", second, attempt=0)
    yield
    assert lives(cluster) == [("7", 0, 0, 100, "failed"), ("8", 1, 150, 300, "ok")]
    assert cluster.gpu_s().items() >= expected.items()
    assert cluster.read("select restarts, attempts from marts.runs").rows() == [(1, 2)]
    assert cluster.own("job_id, cores_per_gpu", "marts.attempts") == [("7", None), ("8", 16.0)]


@pytest.mark.parametrize("numbers", [(0, 1), (20_000, 30_000)])
def test_lives_inside_a_job_run_keep_their_order_where_numbers_restart(cluster, numbers):
    cluster.node("a", 1)
    for job, start in (("7", 0), ("8", 200)):
        cluster.job(job, start, start + 200, ["a"], 1, job_name="r")
        for began, attempt in zip((start, start + 100), numbers, strict=True):
            events = [{"event": "job.start", "t": began + 5}, *steps(1, 5, began + 10)]
            cluster.events("r", events, attempt=attempt)
    yield
    assert [row[:4] for row in lives(cluster)] == [
        ("7", 0, 0, 105), ("7", 1, 105, 200), ("8", 2, 200, 305), ("8", 3, 305, 400)]  # fmt: skip


# what it shows: where the second life begins again, from which life on rank 0 reports its start
@each({"the other rank reports each start": (9, 0), "steps begin again": (5, 1)})  # fmt: skip
def test_a_rank_that_reports_no_start_lives_as_long_as_the_gang(cluster, again, from_life):
    """Its steps go on where the gang was restarted, from its last save or before it."""
    cluster.job_on_a_node("1", 0, 200, 2)
    for life, (start, first) in enumerate(((0, 1), (100, again))):
        begun = [{"event": "job.start", "t": start + 5}] if life >= from_life else []
        for rank, reported in enumerate((begun, [])):
            rows = [*reported, *steps(first, first + 7, start + 10)]
            cluster.events("1", rows, attempt=None, rank=rank)
    yield
    assert [row[2:] for row in lives(cluster)] == [(0, 105, "failed"), (105, 200, "ok")]


# what it shows: first step of the second attempt, lost steps of both, what data quality names
@each({
    "after the saved step": (5, [4, 0], []),
    "after the last step": (9, [0, 0], []),
    "where a log that prints every 8th step begins": (17, [0, 0], []),
    "at a step that was not reached": (201, [None, 0], [(1, "{}/r at step 201 after 8")]),
})  # fmt: skip
def test_steps_that_a_run_rolled_back(cluster, first, lost, named):
    cluster.job_on_a_node("1", 0, 100, 1, "FAILED", job_name="r")
    cluster.job("2", 100, 200, ["a"], 1, job_name="r")
    cluster.events("r", [*steps(1, 8, 10), durable(4, 50)], attempt=0)
    cluster.events("r", steps(first, first + 7, 110), attempt=1)
    yield
    found = cluster.read("select lost_steps from marts.attempts order by attempt")
    assert found["lost_steps"].to_list() == lost
    sql = f"""select n, example from marts.data_quality
        where kind = 'steps that were not reached' and starts_with(example, '{cluster.name}/')"""
    found = cluster.read(sql)
    assert found.rows() == [(n, example.format(cluster.name)) for n, example in named]


def named(cluster):
    cluster.node("a", 4)
    for job, name in (("7", "pretrain"), ("8", ""), ("9", "exp42")):
        cluster.job(job, 0, 100, ["a"], 1, job_name=name)
    cluster.events("exp42", steps(1, 9, 10))


OUTCOMES = "select outcome from marts.attempts where job_id = '1'"
test_what_lives_are = shown_by({
    "a life of a job that was resized goes on in the next record": (
        lambda c: [c.job_on_a_node("7", 0, 100, 2, "RESIZING"),
                   c.job("7", 0, 200, ["a"], 1, submit=100),
                   c.events("7", steps(1, 20, 0), attempt=0)], lambda c: c.gpu_s()["step_unsplit"],
        2 * 100 + 100),
    "a run that has only the scheduler's number is named after its job": (
        named, "select run_id, run_name from marts.runs order by all",
        [("7", "pretrain (7)"), ("8", "8"), ("exp42", "exp42")]),
    # its log has a last line and no ending: whether it saved nobody says
    "steps of a run that just stops stay at risk": (
        lambda c: [c.job_on_a_node("1", 0, 200, 1, "UNKNOWN"), c.job("2", 200, 400, ["a"], 1),
                   c.events("1", steps(1, 10, 10))],
        lambda c: (c.read(OUTCOMES).rows(), c.gpu_s()["at_risk"]), ([("unknown",)], 100)),
})  # fmt: skip


# what it shows: exit code, what the job says of its end; outcome and cause
@each({
    "crashed, as `requeue-exit` of the recorded Slurm": ("14:0", None, ("failed", "FAILED")),
    "reports a crash": ("0:0", "nan", ("failed", "nan")),
    "requeued by the operator": ("0:0", "preempted", ("limit", "REQUEUED")),
})  # fmt: skip
def test_an_attempt_that_was_requeued(cluster, exit_code, said, expected):
    cluster.job_on_a_node("7", 0, 200, 1, "REQUEUED", exit_code=exit_code)
    cluster.job("7", 300, 600, ["a"], 1, submit=200, eligible=300)
    failure = [{"event": "failure", "kind": said, "t": 115}] if said else []
    cluster.events("7", [*steps(1, 10, 10), durable(10, 111), *failure], attempt=0)
    cluster.events("7", steps(11, 20, 310), attempt=1)
    yield
    found = cluster.read("select outcome, cause from marts.attempts order by attempt")
    assert found.row(0) == expected
    if expected[0] == "failed":
        assert cluster.gpu_s()["fault_stall"] == 90


# what its log says at the end of 10 saved and 10 further steps; state, outcome, steps that are kept
@each({
    "ends well": ([("job.end", None, 210)], ("COMPLETED", "ok", 20)),
    "ends well after an error that it handled": (
        [("failure", "exception", 210), ("job.end", None, 210)], ("COMPLETED", "ok", 20)),
    "fails": ([("failure", "exception", 210)], ("FAILED", "failed", 10)),
    "is cancelled by Slurm": (
        [("failure", "cancelled", 210), ("job.end", None, 210)], ("CANCELLED", "limit", 10)),
    "is preempted": (
        [("failure", "preempted", 210), ("job.end", None, 210)], ("PREEMPTED", "limit", 10)),
})  # fmt: skip
def test_a_run_whose_log_alone_says_how_it_ended(cluster, ending, expected):
    said = [{"event": event, "kind": kind, "t": t} for event, kind, t in ending]
    work = [{"t": 0, "event": "job.start"}, *steps(1, 20, 0), durable(10, 105)]
    cluster.events("train", [*work, *said], attempt=None, host="a", local_rank=0)
    yield
    (attempt,) = cluster.read("select state, outcome, kept_steps from marts.attempts").rows()
    assert attempt == expected


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

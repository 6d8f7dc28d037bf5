"""Which life of its gang an event belongs to, by what the job numbers and what it leaves out."""

import pytest
from tests.queries.conftest import START_MS, built_together, durable, steps


def lives(evidence):
    columns = f"job_id, attempt, (start_ms - {START_MS}) // 1000, (end_ms - {START_MS}) // 1000"
    rows = evidence.own(f"{columns}, outcome", "intermediate.int_attempts")
    return sorted(rows, key=lambda row: row[1])


# what it shows: events of the second job run, GPU-seconds
SAVED = [*steps(1, 8, 10), durable(4, 50)]
RESTARTED = {
    # the restart count of torchrun is 0 again after a requeue
    "with its steps": (SAVED, steps(5, 18, 160), {"lost_work": 40, "step_unsplit": 40 + 140}),
    # within a second of the job run's start, by which clocks differ: a start says what it is
    "that only starts": (
        [{"event": "job.start", "t": 1}, *steps(1, 8, 10)],
        [{"event": "job.start", "t": 151}, {"event": "job.end", "t": 153}], {},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("first", "second", "expected"), RESTARTED.values(), ids=RESTARTED)
@built_together
def test_a_number_that_each_job_run_restarts_names_two_lives(cluster, first, second, expected):
    cluster.job_on_a_node("7", 0, 100, 1, "FAILED", job_name="r")
    cluster.job("8", 150, 300, ["a"], 1, job_name="r")
    cluster.events("r", first, attempt=0)
    cluster.events("r", second, attempt=0)
    yield
    assert lives(cluster) == [("7", 0, 0, 100, "failed"), ("8", 1, 150, 300, "ok")]
    assert cluster.gpu_s().items() >= expected.items()
    assert cluster.read("select restarts, attempts from marts.runs").rows() == [(1, 2)]


@pytest.mark.parametrize("numbers", [(0, 1), (20_000, 30_000)])
@built_together
def test_lives_inside_a_job_run_keep_their_order_where_numbers_restart(cluster, numbers):
    cluster.node("a", 1)
    for job, start in (("7", 0), ("8", 200)):
        cluster.job(job, start, start + 200, ["a"], 1, job_name="r")
        for began, attempt in zip((start, start + 100), numbers, strict=True):
            events = [{"event": "job.start", "t": began + 5}, *steps(1, 5, began + 10)]
            cluster.events("r", events, attempt=attempt)
    yield
    assert [row[:4] for row in lives(cluster)] == [
        ("7", 0, 0, 105), ("7", 1, 105, 200), ("8", 2, 200, 305), ("8", 3, 305, 400),
    ]  # fmt: skip


@built_together
def test_a_life_of_a_job_that_was_resized_goes_on_in_the_next_record(cluster):
    cluster.job_on_a_node("7", 0, 100, 2, "RESIZING")
    cluster.job("7", 0, 200, ["a"], 1, submit=100)
    cluster.events("7", steps(1, 20, 0), attempt=0)
    yield
    assert cluster.gpu_s()["step_unsplit"] == 2 * 100 + 100


# what it shows: where the second life begins again, from which life on rank 0 reports its start
WITHOUT_STARTS = {"the other rank reports each start": (9, 0), "steps begin again": (5, 1)}


@pytest.mark.parametrize(("again", "from_life"), WITHOUT_STARTS.values(), ids=WITHOUT_STARTS)
@built_together
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


@built_together
def test_a_run_that_has_only_the_schedulers_number_is_named_after_its_job(cluster):
    cluster.node("a", 4)
    cluster.job("7", 0, 100, ["a"], 1, job_name="pretrain")
    cluster.job("8", 0, 100, ["a"], 1, job_name="")
    cluster.job("9", 0, 100, ["a"], 1, job_name="exp42")
    cluster.events("exp42", steps(1, 9, 10))
    yield
    found = cluster.read("select run_id, run_name from marts.runs order by all").rows()

    assert found == [("7", "pretrain (7)"), ("8", "8"), ("exp42", "exp42")]


# what it shows: first step of the second attempt, lost steps of both, what data quality names
RESUMED = {
    "after the saved step": (5, [4, 0], []),
    "after the last step": (9, [0, 0], []),
    "where a log that prints every 8th step begins": (17, [0, 0], []),
    "at a step that was not reached": (201, [None, 0], [(1, "{}/r at step 201 after 8")]),
}


@pytest.mark.parametrize(("first", "lost", "named"), RESUMED.values(), ids=RESUMED)
@built_together
def test_steps_that_a_run_rolled_back(cluster, first, lost, named):
    cluster.job_on_a_node("1", 0, 100, 1, "FAILED", job_name="r")
    cluster.job("2", 100, 200, ["a"], 1, job_name="r")
    cluster.events("r", [*steps(1, 8, 10), durable(4, 50)], attempt=0)
    cluster.events("r", steps(first, first + 7, 110), attempt=1)
    yield
    found = cluster.read("select lost_steps from marts.attempts order by attempt")
    assert found["lost_steps"].to_list() == lost
    found = cluster.read(
        f"""select n, example from marts.data_quality
        where kind = 'steps that were not reached' and starts_with(example, '{cluster.name}/')"""
    )
    assert found.rows() == [(n, example.format(cluster.name)) for n, example in named]

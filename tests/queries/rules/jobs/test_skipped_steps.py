"""A run that goes on at a step that it had not reached: how much it rolled back is not known."""

import pytest
from tests.queries.conftest import built_together, durable, steps

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

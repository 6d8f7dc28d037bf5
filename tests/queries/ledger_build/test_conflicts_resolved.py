"""A job run that lost its GPU to another gets it back when the other's record changes."""

import pytest
from tests.queries.conftest import built_together


def name_gpu(cluster, job, submit):
    """Load that a job had the first GPU of the node."""
    cluster.hold(job, submit=submit, slurm_index=0)


def held_s(cluster):
    rows = cluster.read(
        "select job_run_key, sum(gpu_ms) / 1000 from marts.ledger_scoped "
        "where job_run_key is not null group by 1"
    )
    return {key.split("/")[1].split("@")[0]: seconds for key, seconds in rows.rows()}


@built_together(builds=2)
def test_a_job_run_that_lost_all_its_time_gets_back_what_the_other_gives_up(cluster):
    cluster.job_on_a_node("1", 0, 100, 1)
    name_gpu(cluster, "1", 0)
    cluster.job("2", 0, 100, ["a"], 1)
    name_gpu(cluster, "2", 0)
    yield
    before = held_s(cluster)
    assert sum(before.values()) == 100
    winner = max(before, key=before.get)
    loser = "1" if winner == "2" else "2"
    cluster.job(winner, 0, 40, ["a"], 1, observed_at=cluster.at(200))
    yield
    assert held_s(cluster) == {winner: 40, loser: 60}


@pytest.mark.parametrize(
    ("record", "held", "conflicts"),
    [({"end": 60}, {"1": 90, "2": 10}, None), ({"account": "b"}, {"1": 50, "2": 50}, 1)],
    ids=["the other ends earlier", "the record of who kept the GPU moves nothing"],
)
@built_together(builds=2)
def test_a_job_run_that_lost_the_end_of_its_time(cluster, record, held, conflicts):
    """It gets back what the other gives up; else its loss stays a conflict."""
    cluster.job_on_a_node("1", 0, 100, 1)
    name_gpu(cluster, "1", 0)
    cluster.job("2", 50, 100, ["a"], 1)
    name_gpu(cluster, "2", 50)
    yield
    assert held_s(cluster) == {"1": 50, "2": 50}
    again = {"submit": 50, "observed_at": cluster.at(200), **record}
    cluster.job("2", 50, again.pop("end", 100), ["a"], 1, **again)
    yield
    assert held_s(cluster) == held
    if conflicts:
        found = cluster.read(
            f"""select job_run_key from intermediate.int_hold_conflicts
            where starts_with(job_run_key, '{cluster.name}/')"""
        )
        assert found.height == conflicts

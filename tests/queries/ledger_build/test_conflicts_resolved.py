"""A job run that lost its GPU to another gets it back when the other's record changes."""

import pytest
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build


def name_gpu(evidence, job, submit):
    """Load that a job had the first GPU of the node."""
    evidence.add(
        "holds", job_id_raw=job, submit_at=submit, node="a", slurm_index=0, method="scontrol",
    )  # fmt: skip


def held_s(evidence):
    evidence.store.build()
    rows = evidence.store.read(
        "select job_run_key, sum(gpu_ms) / 1000 from marts.ledger_scoped "
        "where job_run_key is not null group by 1"
    )
    return {key.split("/")[1].split("@")[0]: seconds for key, seconds in rows.rows()}


def test_a_job_run_that_lost_all_its_time_gets_back_what_the_other_gives_up(evidence):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    name_gpu(evidence, "1", 0)
    evidence.job("2", 0, 100, ["a"], 1, submit=0)
    name_gpu(evidence, "2", 0)
    before = held_s(evidence)
    assert sum(before.values()) == 100
    winner = max(before, key=before.get)
    loser = "1" if winner == "2" else "2"

    evidence.job(winner, 0, 40, ["a"], 1, submit=0, observed_at=evidence.at(200))

    assert held_s(evidence) == {winner: 40, loser: 60}
    assert_equals_full_build(evidence)


@pytest.mark.parametrize(
    ("record", "held", "conflicts"),
    [({"end": 60}, {"1": 90, "2": 10}, None), ({"account": "b"}, {"1": 50, "2": 50}, 1)],
    ids=["the other ends earlier", "the record of who kept the GPU moves nothing"],
)
def test_a_job_run_that_lost_the_end_of_its_time(evidence, record, held, conflicts):
    """It gets back what the other gives up; else its loss stays a conflict."""
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    name_gpu(evidence, "1", 0)
    evidence.job("2", 50, 100, ["a"], 1, submit=50)
    name_gpu(evidence, "2", 50)
    assert held_s(evidence) == {"1": 50, "2": 50}

    again = {"submit": 50, "observed_at": evidence.at(200), **record}
    evidence.job("2", 50, again.pop("end", 100), ["a"], 1, **again)

    assert held_s(evidence) == held
    if conflicts:
        sql = "select job_run_key from intermediate.int_hold_conflicts"
        assert evidence.store.read(sql).height == conflicts
    assert_equals_full_build(evidence)

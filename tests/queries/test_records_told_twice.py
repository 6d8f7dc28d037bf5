"""One scheduler record that several listings tell: one job run, and its GPUs held once."""

from __future__ import annotations

import pytest

INDEX = 2798573628995141632  # of a record in the accounting's database


def held(evidence) -> list[tuple[object, ...]]:
    evidence.store.build()
    return evidence.store.read(
        """select job_run_key, (sum(gpu_ms) / 1000)::integer as gpu_s
        from marts.ledger_hourly where job_run_key is not null group by all order by all"""
    ).rows()


@pytest.mark.parametrize("indices", [[INDEX, None], [None, INDEX]])
@pytest.mark.parametrize("is_built_between", [True, False])
def test_a_record_with_and_without_the_index_of_the_database_is_one_job_run(
    evidence, indices, is_built_between
):
    """JSON lacks the index; half a node, so that a second hold would find free GPUs."""
    evidence.node("a", 4)
    for index in indices:
        evidence.job("1", 0, 100, ["a"], 2, db_index=index)
        if is_built_between:
            evidence.store.build()

    assert held(evidence) == [("c/1@1800000000", 200)]
    (run,) = evidence.store.read("select db_index from raw.job_runs")["db_index"].to_list()
    assert run == INDEX


def test_records_of_a_job_that_was_submitted_anew_stay_apart(evidence):
    """A requeue and a resize give a new moment of submission."""
    evidence.node("a", 4)
    evidence.job("1", 0, 40, ["a"], 4, "RESIZING", submit=0, db_index=73)
    evidence.job("1", 0, 100, ["a"], 2, submit=40, db_index=76)

    assert held(evidence) == [("c/1@1800000000", 160), ("c/1@1800000040", 120)]

"""Which rank is named as the one that the others waited for, and from what."""

import pytest
from tests.queries.conftest import steps


def gang(evidence, comm_s, count=20, length=2.0):
    """Load a rank for each of `comm_s`: a number, or a function of the step; build."""
    evidence.node("a", len(comm_s))
    evidence.job("1", 0, count * length, ["a"], len(comm_s))
    for rank, reported in enumerate(comm_s):
        events = steps(1, count, 0, length)
        for event in events:
            value = reported(event["step"]) if callable(reported) else reported
            if value is not None:
                event["comm_s"] = value
        evidence.events("1", events, rank=rank, gpu_uuid=f"c/a#{rank}")
    return evidence.gpu_s()


def named(evidence):
    """Return rank, steps and imposed wait of each episode."""
    return evidence.store.read(
        "select rank, steps, round(imposed_wait_gpu_s, 3), evidence from marts.stragglers "
        "order by rank, first_step"
    ).rows()


def test_the_ranks_own_comm_s_names_the_one_that_waits_least(evidence):
    found = gang(evidence, [0.9, 0.9, 0.9, 0.1])

    rank, steps, imposed, evidence_of_it = named(evidence)[0]
    assert len(named(evidence)) == 1
    assert (rank, steps) == (3, 19), "the first step names nobody"
    assert imposed == pytest.approx(19 * 3 * 0.8)
    assert "comm_s" in evidence_of_it
    assert found == {
        "straggler_wait": pytest.approx(20 * 3 * 0.8),
        "exposed_comm": pytest.approx(20 * 4 * 0.1),
        "productive": pytest.approx(160 - 48 - 8),
    }


def test_a_rank_that_is_late_in_some_steps_is_named_in_those(evidence):
    slow = lambda step: 0.9 if 5 <= step <= 8 else 0.1  # noqa: E731 -- a line of numbers
    gang(evidence, [slow, slow, slow, 0.1])

    assert [row[:3] for row in named(evidence)] == [(3, 4, pytest.approx(4 * 3 * 0.8))]


def test_equal_communication_names_nobody(evidence):
    found = gang(evidence, [0.9, 0.9, 0.9, 0.9])

    assert named(evidence) == []
    assert found == {"exposed_comm": pytest.approx(72), "productive": pytest.approx(88)}


def test_comm_s_of_some_ranks_names_nobody_and_splits_no_wait(evidence):
    found = gang(evidence, [0.9, None, None, 0.1])

    assert named(evidence) == []
    assert "straggler_wait" not in found
    assert "productive" not in found


def test_waits_below_a_gpu_second_name_nobody(evidence):
    """As the ranks of a job that hangs after some short steps do."""
    gang(evidence, [0.02, 0.02, 0.02, 0.0], count=10, length=0.1)

    assert named(evidence) == []
    steps = evidence.store.read("select straggler_rank from marts.train_steps")
    assert steps["straggler_rank"].null_count() == 10


def test_evidence_of_a_straggler_names_the_source_there_is(evidence):
    gang(evidence, [0.9, 0.9, 0.9, 0.1])

    loss = evidence.store.read(
        "select evidence from marts.loss_causes where category = 'straggler_wait'"
    ).item()
    cost = "GPU 3 of a cost the gang 45.6 GPU-s"
    assert loss == f"comm_s of all ranks: what each has over the least; {cost}"

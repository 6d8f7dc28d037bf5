"""Which rank is named as the one that the others waited for, and from what."""

import pytest
from tests.queries.conftest import built_together, steps


def gang(cluster, comm_s, count=20, length=2.0, **parts):
    """Load a rank for each of `comm_s`: a number, or a function of the step.

    parts: other fields of the steps, a list of them by rank; None: the rank does not report it
    """
    cluster.node("a", len(comm_s))
    cluster.job("1", 0, count * length, ["a"], len(comm_s))
    for rank, reported in enumerate(comm_s):
        events = steps(1, count, 0, length)
        for event in events:
            value = reported(event["step"]) if callable(reported) else reported
            if value is not None:
                event["comm_s"] = value
            event |= {name: of[rank] for name, of in parts.items() if of[rank] is not None}
        cluster.events("1", events, rank=rank, gpu_uuid=cluster.gpu(f"a#{rank}"))


def late_ones(step):
    """Return how long the others wait in a step of which four are late."""
    return 0.9 if 5 <= step <= 8 else 0.1


# what it shows: comm_s by rank, steps and their length; rank, steps and imposed wait of stragglers,
# the first step names nobody; GPU-seconds by category
GANGS = {
    "the one that waits least": (
        [0.9, 0.9, 0.9, 0.1], 20, 2.0, [(3, 19, 19 * 3 * 0.8)],
        {"straggler_wait": 48, "exposed_comm": 8, "productive": 160 - 48 - 8},
    ),
    "a rank that is late in some steps": (
        [late_ones, late_ones, late_ones, 0.1], 20, 2.0, [(3, 4, 4 * 3 * 0.8)],
        {"straggler_wait": 9.6, "exposed_comm": 8, "productive": 160 - 9.6 - 8},
    ),
    "equal communication names nobody": (
        [0.9] * 4, 20, 2.0, [], {"exposed_comm": 72, "productive": 88},
    ),
    "comm_s of some ranks names nobody and splits no wait": (
        [0.9, None, None, 0.1], 20, 2.0, [], {"exposed_comm": 20, "step_unsplit": 140},
    ),
    # as the ranks of a job that hangs after some short steps do
    "waits below a GPU-second name nobody": (
        [0.02, 0.02, 0.02, 0.0], 10, 0.1, [], {"straggler_wait": 0.6, "productive": 3.4},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("comm_s", "count", "length", "late", "ledger"), GANGS.values(), ids=GANGS)
@built_together
def test_stragglers_of_a_gang(cluster, comm_s, count, length, late, ledger):
    gang(cluster, comm_s, count, length)
    yield
    found = cluster.read(
        "select rank, steps, round(imposed_wait_gpu_s, 3), evidence from marts.stragglers "
        "order by rank, first_step"
    ).rows()
    assert [row[:3] for row in found] == [pytest.approx(row) for row in late]
    assert all("comm_s" in row[3] for row in found)
    assert cluster.gpu_s() == pytest.approx(ledger)
    if not late:
        own = f"where starts_with(run_key, '{cluster.name}/')"
        named = cluster.read(f"select straggler_rank from marts.train_steps {own}")
        assert named["straggler_rank"].null_count() == count


@built_together
def test_evidence_of_a_straggler_names_the_source_there_is(cluster):
    gang(cluster, [0.9, 0.9, 0.9, 0.1])
    yield
    loss = cluster.read(
        "select evidence from marts.loss_causes where category = 'straggler_wait'"
    ).item()
    cost = "GPU 3 of a cost the gang 45.6 GPU-s"
    assert loss == f"comm_s of all ranks: what each has over the least; {cost}"


PARTS = {"fwd_s": [0.5] * 4, "bwd_s": [1.4, 1.4, 1.4, 0.6]}
# what the ranks report beside it; the wait that is imposed, or none where nobody is named
OF_PARTS = {
    "a rank that is late in all steps": ([None] * 4, {}, [(3, 19, 19 * 3 * 0.8)]),
    "a rank without parts": ([None] * 4, {"bwd_s": [1.4, 1.4, None, 0.6]}, []),
    "an optimizer that one rank reports": ([None] * 4, {"opt_s": [0.1, None, None, None]}, []),
    "what is measured comes first": ([0.9, 0.1, 0.9, 0.9], {}, [(1, 19, 19 * 3 * 0.8)]),
}


@pytest.mark.parametrize(("comm_s", "parts", "late"), OF_PARTS.values(), ids=OF_PARTS)
@built_together
def test_stragglers_by_the_parts_of_steps(cluster, comm_s, parts, late):
    gang(cluster, comm_s, **PARTS | parts)
    yield
    found = cluster.read("select rank, steps, round(imposed_wait_gpu_s, 3) from marts.stragglers")
    assert found.rows() == [pytest.approx(row) for row in late]

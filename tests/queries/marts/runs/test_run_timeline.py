"""The lane of a run adds up to its ledger in any window."""

from collections import Counter

import pytest
from tests.queries.conftest import START_MS, built_together, durable, phase, steps

from goodput_queries.ledger import ledger
from goodput_queries.scope import Scope


def waits_of_all(rank):
    """Return steps in which each rank reports its own waits."""
    return steps(1, 300, 20, comm_s=1 + rank / 4, straggler_s=2 - rank / 2, data_s=0.5)


def waits_of_one(rank):
    """Return steps of which rank 0 alone reports waits."""
    return steps(1, 300, 20, **({"comm_s": 1.0, "straggler_s": 0.5} if rank == 0 else {}))


def communication_alone(rank):
    """Return steps whose waits are not known: they are no split of a step."""
    return steps(1, 300, 20, data_s=1.0 + rank)


def a_save_between(rank):
    """Return steps around a save of 5 s."""
    first, second = steps(1, 100, 20, comm_s=1.0, straggler_s=1.0), steps(101, 299, 1025)
    return [*first, phase("ckpt_save", 1020, 1025), *second] if rank == 0 else [*first, *second]


@pytest.mark.parametrize(
    "evidence", [waits_of_all, waits_of_one, communication_alone, a_save_between]
)
@pytest.mark.parametrize("window", [(0, 3600), (615, 1234), (1019, 1027), (3000, 3100)])
@built_together
def test_a_lane_adds_up_to_the_ledger(cluster, evidence, window):
    cluster.watched(3600)
    cluster.job_on_a_node("7", 0, 3600, 2)
    for rank in range(2):
        of_gpu = {"rank": rank, "gpu_uuid": f"a#{rank}"}
        cluster.events("7", [*evidence(rank), durable(300, 3030)], **of_gpu)

    yield

    first, last = (START_MS + 1000 * second for second in window)
    scope = Scope(first, last, cluster=cluster.name, run=f"{cluster.name}/7")
    drawn = Counter()
    for category, start, end, share in cluster.read(
        """select category, epoch_ms(start_at), epoch_ms(end_at), share_ratio
        from marts.run_timeline""",
        scope,
    ).rows():
        drawn[category] += 2 * share * (min(end, last) - max(start, first))
    found = ledger(cluster.store, by=["category"], scope=scope)
    expected = dict(found.select("category", "gpu_ms").rows())
    assert {name: round(ms) for name, ms in drawn.items()} == expected

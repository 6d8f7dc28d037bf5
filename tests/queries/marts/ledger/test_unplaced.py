"""Allocated time that cannot be placed on a GPU is outside the ledger, but reported."""

import pytest
from tests.queries.conftest import START_MS, built_together

from goodput_queries.scope import EVERYTHING, Scope


def unplaced(cluster, scope=EVERYTHING):
    """Return job, reason and GPU-seconds."""
    assert cluster.violations() == 0
    return cluster.read(
        """select job_id, reason, sum(gpu_ms) / 1000 as gpu_s
        from marts.unplaced group by all order by all""",
        scope=scope,
    ).rows()


# what it shows: nodes of a job of two GPUs and what else is known of it, why it is unplaced
OUTSIDE = {
    "without a node list": ([], {}, "no_node_list"),
    # its start or end is in the hour that clocks repeat, and nothing settles which
    "its time came twice": (["a"], {"is_time_ambiguous": True}, "ambiguous_time"),
}


@pytest.mark.parametrize(("nodes", "more", "reason"), OUTSIDE.values(), ids=OUTSIDE)
@built_together
def test_a_job_outside_the_ledger(cluster, nodes, more, reason):
    cluster.node("a", 2)
    cluster.job("1", 0, 5000, nodes, 2, **more)
    cluster.job("2", 0, 1000, ["a"], 1)
    yield
    assert unplaced(cluster) == [("1", reason, 10_000)]
    assert cluster.gpu_s() == {"unknown": 1000, "free_unknown": 9000}


@built_together
def test_a_window_has_its_part_of_what_is_unplaced(cluster):
    cluster.node("a", 2)
    cluster.job("1", 0, 5000, [], 2)

    scope = Scope(from_ms=START_MS + 1_000_000, to_ms=START_MS + 4_000_000)
    yield
    assert unplaced(cluster, scope) == [("1", "no_node_list", 6000)]


@pytest.mark.parametrize(
    ("gpus", "listed_from", "jobs", "expected"),
    [
        (2, 0, [(0, 1000, 3)], [("0", "no_such_gpu", 1000)]),
        (1, 600, [(0, 1000, 1)], [("0", "no_such_gpu", 600)]),
        (1, 0, [(0, 1000, 1), (900, 1500, 1)], []),
    ],
    ids=["beyond the GPUs of the node", "before the dates of the inventory", "contested"],
)
@built_together
def test_allocated_time_on_no_known_gpu_is_unplaced(cluster, gpus, listed_from, jobs, expected):
    for index in range(gpus):
        cluster.add(
            "gpus", source="inventory", node="a", gpu_uuid=f"GPU-{cluster.name}-{index}",
            slurm_index=index, gpu_model="h100", valid_from_at=listed_from,
        )  # fmt: skip
    for number, (start, end, count) in enumerate(jobs):
        cluster.job(str(number), start, end, ["a"], count)
    yield
    assert unplaced(cluster) == expected


@pytest.mark.parametrize(
    ("kind", "priced"), [("h100", "h100"), (None, "h100"), ("a100", "a100")]
)  # of an A100 nothing but the job is known
@built_together
def test_unplaced_time_has_the_price_of_its_kind_of_gpu(cluster, kind, priced):
    cluster.node("a", 2, model="NVIDIA H100 80GB HBM3")
    cluster.add("rates", gpu_model=priced, price_per_gpu_h=3, valid_from_at=-86400)
    cluster.job("1", 0, 7200, [], 2, gpu_type=kind)
    yield
    costs = cluster.read("select sum(cost) from marts.unplaced")
    assert costs.item() == pytest.approx(12)

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


# what it shows: GPUs of a node and from when on they are listed; jobs (start, end, nodes, GPUs,
# more); what is unplaced of them
OUTSIDE = {
    "without a node list": (
        2, 0, [(0, 5000, [], 2, {}), (0, 1000, ["a"], 1, {})], [("0", "no_node_list", 10_000)],
    ),
    # its start or end is in the hour that clocks repeat, and nothing settles which
    "its time came twice": (
        2, 0, [(0, 5000, ["a"], 2, {"is_time_ambiguous": True}), (0, 1000, ["a"], 1, {})],
        [("0", "ambiguous_time", 10_000)],
    ),
    "beyond the GPUs of the node": (
        2, 0, [(0, 1000, ["a"], 3, {})], [("0", "no_such_gpu", 1000)],
    ),
    "before the dates of the inventory": (
        1, 600, [(0, 1000, ["a"], 1, {})], [("0", "no_such_gpu", 600)],
    ),
    "contested": (1, 0, [(0, 1000, ["a"], 1, {}), (900, 1500, ["a"], 1, {})], []),
}  # fmt: skip


@pytest.mark.parametrize(("gpus", "listed_from", "jobs", "expected"), OUTSIDE.values(), ids=OUTSIDE)
@built_together
def test_time_outside_the_ledger(cluster, gpus, listed_from, jobs, expected):
    slots = [
        {"gpu_uuid": f"GPU-{cluster.name}-{index}", "slurm_index": index} for index in range(gpus)
    ]
    listed = {"node": "a", "gpu_model": "h100", "valid_from_at": listed_from}
    cluster.add("gpus", *slots, source="inventory", **listed)
    for number, (start, end, nodes, count, more) in enumerate(jobs):
        cluster.job(str(number), start, end, nodes, count, **more)
    yield
    assert unplaced(cluster) == expected


@built_together
def test_a_window_has_its_part_of_what_is_unplaced(cluster):
    cluster.node("a", 2)
    cluster.job("1", 0, 5000, [], 2)
    yield
    scope = Scope(from_ms=START_MS + 1_000_000, to_ms=START_MS + 4_000_000)
    assert unplaced(cluster, scope) == [("1", "no_node_list", 6000)]


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

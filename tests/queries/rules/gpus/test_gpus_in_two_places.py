"""A GPU that evidence puts in two places at one time is counted in one, and named."""

import pytest
from tests.queries.conftest import built_together

PLACES = """select node, start_ms - 1800000000000 as from_ms, end_ms - 1800000000000 as to_ms
    from intermediate.int_gpu_units where gpu_uuid = 'GPU-{}' order by start_ms"""
NAMED = "select example from marts.data_quality where kind = 'GPUs in two places'"


def listed(cluster, node, *, since=0, until=None, source="dcgm"):
    """Say that a source lists one GPU in a node."""
    named = {"node": f"{cluster.name}-{node}", "gpu_uuid": f"GPU-{cluster.name}", "gpu_index": 0}
    cluster.add("gpus", source=source, valid_from_at=since, valid_to_at=until, **named)


@built_together
def test_of_two_nodes_from_the_same_time_on_one_counts(cluster):
    listed(cluster, "a")
    listed(cluster, "b", source="nvml")
    cluster.watched(100)

    yield

    assert sum(cluster.gpu_s().values()) == 100
    assert len(cluster.read(PLACES.format(cluster.name))) == 1
    assert cluster.read(NAMED).height == 1


@built_together
def test_sources_that_take_turns_over_a_gpu_in_two_nodes_leave_one_stay_in_each(cluster):
    listed(cluster, "a", source="dcgm")
    listed(cluster, "b", source="nvml")
    listed(cluster, "a", source="prometheus")
    cluster.watched(100)

    yield

    assert sum(cluster.gpu_s().values()) == 100
    assert cluster.violations() == 0


@built_together
def test_a_mig_gpu_in_two_nodes_is_one_gpu(cluster):
    listed(cluster, "a")
    listed(cluster, "b", source="nvml")
    cluster.add(
        "gpu_instances", {"gpu_instance": "1"}, {"gpu_instance": "2"}, source="dcgm",
        gpu_uuid=f"GPU-{cluster.name}", profile="3g.40gb", compute_slices=3, valid_from_at=0,
    )  # fmt: skip
    cluster.watched(70)

    yield

    assert sum(cluster.gpu_s().values()) == 70
    assert cluster.violations() == 0


@built_together
def test_a_gpu_that_moves_is_in_its_new_node_from_then_on(cluster):
    listed(cluster, "a")
    listed(cluster, "b", since=60)
    cluster.watched(100)

    yield

    assert cluster.read(PLACES.format(cluster.name)).rows() == [
        (f"{cluster.name}-a", 0, 60_000),
        (f"{cluster.name}-b", 60_000, None),
    ]


@pytest.mark.parametrize("since", [0, 40])
@built_together
def test_an_inventory_comes_before_a_node_where_only_a_job_held_the_gpu(cluster, since):
    listed(cluster, "a")
    cluster.job("1", since, 100, [f"{cluster.name}-b"], 1)
    named = {"slurm_index": 0, "gpu_uuid": f"GPU-{cluster.name}", "method": "hpc_job"}
    cluster.hold("1", submit=since, node=f"{cluster.name}-b", **named)
    cluster.watched(100)

    yield

    assert cluster.read(PLACES.format(cluster.name))["node"].to_list() == [f"{cluster.name}-a"]
    assert cluster.violations() == 0

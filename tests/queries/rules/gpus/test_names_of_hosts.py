"""Job events and exporters find their node by its short and its full name, else by its GPUs."""

import pytest
from tests.queries.conftest import built_together, steps


@pytest.mark.parametrize("of_job", ["", ".cluster.example"])
@pytest.mark.parametrize("of_events", ["", ".cluster.example"])
@built_together
def test_a_host_is_its_node_with_and_without_its_domain(cluster, of_job, of_events):
    """The run is known by its name, which needs the host, and each rank has its GPU."""
    node = f"gpu-{cluster.name}"
    cluster.node(node + of_job, 2)
    cluster.job("1", 0, 100, [node + of_job], 2, job_name="r")
    for rank in (0, 1):
        ran = steps(1, 8, 10, data_s=1.0 + rank)
        cluster.events("r", ran, rank=rank, host=node + of_events, cluster=None)
    yield
    found = cluster.gpu_s()
    assert (found["step_unsplit"], found["data_stall"]) == (2 * 80 - 24, 24)
    lives = cluster.store.read(
        "select job_run_key from intermediate.int_event_lives where list_has_any(hosts, $1)",
        [[node, f"{node}.cluster.example"]],
    )
    assert lives["job_run_key"].to_list() == [f"{cluster.name}/1@1800000000"]


def listed(cluster, start, end):
    """Say of a GPU that it was in node `a` from one second to the other."""
    times = {"valid_from_at": start, "valid_to_at": end, "gpu_model": "h100"}
    gpu = {"gpu_uuid": cluster.gpu("GPU-0"), "gpu_index": 0}
    cluster.add("gpus", gpu, source="inventory", node="a", **times)


def seen_in_a_pod(cluster, second):
    """Say that an exporter, which calls itself after its pod, saw that GPU from then on."""
    gpu = {"gpu_uuid": cluster.gpu("GPU-0"), "gpu_index": 0}
    cluster.add("gpus", gpu, source="dcgm", node=f"exporter-{cluster.name}", valid_from_at=second)


# what it shows: when the inventory has the GPU in node `a`, when the pod sees it; s of its nodes
SEEN = {
    "at no time": ((0, None), None, {"a": 1000}),
    "from the start": ((0, None), 0, {"a": 1000}),
    "later": ((0, None), 500, {"a": 1000}),
    "after it left the inventory's node": ((0, 400), 500, {"a": 400, "exporter": 500}),
}


@pytest.mark.parametrize(("listed_s", "seen_s", "expected"), SEEN.values(), ids=SEEN)
@built_together
def test_a_host_whose_gpus_an_inventory_file_has_on_a_node_is_that_node(
    cluster, listed_s, seen_s, expected
):
    listed(cluster, *listed_s)
    seen_in_a_pod(cluster, seen_s)
    cluster.watched(1000)
    yield
    rows = cluster.read(
        "select node, sum(gpu_ms)::bigint // 1000 from marts.ledger_scoped group by node"
    )
    assert {node.removesuffix(f"-{cluster.name}"): s for node, s in rows.rows()} == expected

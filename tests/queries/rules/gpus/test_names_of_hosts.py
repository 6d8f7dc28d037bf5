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
    assert cluster.read("select kind from marts.data_quality where kind like 'unm%'").is_empty()


def why_unmatched(evidence):
    evidence.store.build()
    return evidence.store.read(
        "select what from marts.data_quality where kind = 'unmatched job events'"
    ).item()


@pytest.mark.parametrize(
    ("jobs", "start", "host", "why"),
    [
        (1, 10, "elsewhere", "in no inventory"),
        (1, 1000, "a", "no job was allocated GPUs"),
        (2, 10, "a", "several jobs"),
    ],
)
def test_the_finding_says_why_events_match_no_job(evidence, jobs, start, host, why):
    evidence.node("a", 2)
    for job in range(jobs):
        evidence.job(str(job), 0, 100, ["a"], 1)
    evidence.events("r", steps(1, 8, start), host=host)

    assert why in why_unmatched(evidence)


def test_the_finding_says_that_a_log_without_a_cluster_has_its_job_in_another(evidence):
    evidence.node("a", 1)
    evidence.job("7", 0, 100, ["a"], 1)
    evidence.log("7", steps(1, 8, 10), cluster=None)

    assert "job of another cluster" in why_unmatched(evidence)
    example = "select example from marts.data_quality where kind = 'unmatched job events'"
    assert evidence.store.read(example).item() == "7 attempt 0 (cluster c)"


GPU = {"gpu_uuid": "GPU-0", "gpu_index": 0}


def listed(evidence, start, end):
    """Say of GPU-0 that it was in node `a` from one second to the other."""
    times = {"valid_from_at": start, "valid_to_at": end, "gpu_model": "h100"}
    evidence.add("gpus", GPU, source="inventory", node="a", **times)


def seen_in_a_pod(evidence, second):
    """Say that an exporter, which calls itself after its pod, saw GPU-0 from then on."""
    evidence.add("gpus", GPU, source="dcgm", node="exporter-x7k", valid_from_at=second)


def s_by_node(evidence):
    evidence.watched(1000)
    evidence.store.build()
    return dict(
        evidence.store.read(
            "select node, sum(gpu_ms)::bigint // 1000 from marts.ledger_scoped group by node"
        ).rows()
    )


@pytest.mark.parametrize("seen", [None, 0, 500])
def test_a_host_whose_gpus_an_inventory_file_has_on_a_node_is_that_node(evidence, seen):
    listed(evidence, 0, None)
    seen_in_a_pod(evidence, seen)

    assert s_by_node(evidence) == {"a": 1000}


def test_a_gpu_that_left_the_inventorys_node_is_where_it_is_seen(evidence):
    listed(evidence, 0, 400)
    seen_in_a_pod(evidence, 500)

    assert s_by_node(evidence) == {"a": 400, "exporter-x7k": 500}

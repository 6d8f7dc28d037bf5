"""Job events and exporters find their node by its short and its full name, else by its GPUs.

One GPU may be read by two sources, each by its own name for the node.
"""

import pytest
from tests.queries.conftest import each, shown_by, steps

DOMAINS = ["", ".cluster.example"]


@pytest.mark.parametrize("of_job", DOMAINS)
@pytest.mark.parametrize("of_events", DOMAINS)
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
    hosts = f"list_has_any(hosts, ['{node}', '{node}.cluster.example'])"
    lives = f"select job_run_key from intermediate.int_event_lives where {hosts}"
    assert cluster.store.read(lives).rows() == [(f"{cluster.name}/1@1800000000",)]


# what it shows: when the inventory has the GPU in node `a`, when the pod sees it; s of its nodes
@each({
    "at no time": ((0, None), None, {"a": 1000}),
    "from the start": ((0, None), 0, {"a": 1000}),
    "later": ((0, None), 500, {"a": 1000}),
    "after it left the inventory's node": ((0, 400), 500, {"a": 400, "exporter": 500}),
})  # fmt: skip
def test_a_host_whose_gpus_a_file_has_on_a_node_is_that_node(cluster, listed_s, seen_s, expected):
    gpu = {"gpu_uuid": cluster.gpu("GPU-0"), "gpu_index": 0}
    start, end = listed_s
    times = {"valid_from_at": start, "valid_to_at": end, "gpu_model": "h100"}
    cluster.add("gpus", gpu, source="inventory", node="a", **times)
    pod = f"exporter-{cluster.name}"  # an exporter calls itself after its pod
    cluster.add("gpus", gpu, source="dcgm", node=pod, valid_from_at=seen_s)
    cluster.watched(1000)
    yield
    sql = "select node, sum(gpu_ms)::bigint // 1000 from marts.ledger_scoped group by 1"
    rows = cluster.read(sql).rows()
    assert {node.removesuffix(f"-{cluster.name}"): s for node, s in rows} == expected


RUN, UNKNOWN = "exp-7", "GPU-0a"
RAN = [{"event": "job.start", "t": 4}, *steps(1, 27, 10)]


@pytest.mark.parametrize("named", [None, UNKNOWN])
@pytest.mark.parametrize("has_slots", [True, False])
def test_events_of_gpus_of_no_inventory_are_matched_by_their_host(cluster, has_slots, named):
    if has_slots:
        cluster.node("a", 2)
    cluster.job("7", 0, 300, ["a"], 2)
    cluster.events(RUN, RAN, gpu_uuid=named and cluster.gpu(named))
    yield
    assert cluster.gpu_s() == {"startup": 20, "step_unsplit": 540, "teardown": 40}


test_events_stay_matched = shown_by({"they stay matched when an inventory names the GPU later": (
            [lambda c: [c.job("7", 0, 300, ["a"], 2), c.events(RUN, RAN, gpu_uuid=c.gpu(UNKNOWN))],
             lambda c: c.add("gpus", *({"gpu_uuid": c.gpu(uuid), "slurm_index": i, "gpu_index": i}
                                       for i, uuid in enumerate((UNKNOWN, "GPU-0b"))),
                             source="nvml", node="a")],
            [540, 540])}, read=lambda c: c.gpu_s()["step_unsplit"],
    builds=2)  # fmt: skip


def read_by(cluster, source, node, first, until):
    """Load that a source reads the GPU on a node of that name, every ten seconds."""
    gpu = {"gpu_uuid": cluster.gpu("gpu")}
    seen = {"node": node, "gpu_index": 0, "valid_from_at": first, "cluster": None}
    cluster.add("gpus", seen, source=source, **gpu)
    cluster.samples("gpu", cluster.every(first, until), lambda _: True, source)


@pytest.mark.parametrize("of_job", DOMAINS)
@pytest.mark.parametrize("of_dcgm", DOMAINS)
@pytest.mark.parametrize("of_nvml", DOMAINS)
def test_a_gpu_that_two_sources_read_is_there_once(cluster, of_dcgm, of_nvml, of_job):
    node = f"gpu-{cluster.name}"
    read_by(cluster, "dcgm", node + of_dcgm, 0, 1000)
    read_by(cluster, "nvml", node + of_nvml, 5, 1005)
    cluster.job("1", 0, 1000, [node + of_job], 1)
    yield
    assert cluster.gpu_s() == {"busy_unclassified": 1000, "free_unknown": 5}


@pytest.mark.parametrize("of_dcgm", DOMAINS)
@pytest.mark.parametrize("has_scheduler", [True, False])
def test_names_in_upper_and_lower_case_are_of_one_node(cluster, of_dcgm, has_scheduler):
    node = f"gpu-{cluster.name}"
    read_by(cluster, "dcgm", f"{node}{of_dcgm}".upper(), 0, 1000)
    read_by(cluster, "nvml", node, 5, 1005)
    other = {"gpu_uuid": cluster.gpu("other"), "gpu_index": 1}
    cluster.add("gpus", other, source="nvml", node=node)
    if has_scheduler:
        cluster.job("1", 0, 1000, [node], 1)
    cluster.events("r", steps(1, 8, 10), rank=0, host=f"{node}.Cluster.example", cluster=None)
    yield
    found = cluster.read("select distinct node, gpu_uuid from marts.ledger_scoped")
    assert sorted(found.rows()) == [(node, cluster.gpu("gpu")), (node, cluster.gpu("other"))]


NODES = "select node from intermediate.int_gpu_units where gpu_uuid = '{}' order by start_ms"
test_nodes_of_two_domains = shown_by({
    # the GPU was taken from one to the other, as its names say
    "nodes of one short name in two domains are two": (
        lambda c: [read_by(c, "dcgm", f"a-{c.name}.east", 0, 500),
                   read_by(c, "nvml", f"a-{c.name}.west", 600, 1000)],
        lambda c: c.read(NODES.format(c.gpu("gpu"))).rows(),
        lambda c: [(f"a-{c.name}.east",), (f"a-{c.name}.west",)]),
})  # fmt: skip

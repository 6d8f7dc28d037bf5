"""Nodes with GPUs: what they have, when they could not be used, when nobody looked."""

import pytest
from tests.ingest.sources.prometheus.kubernetes.conftest import (
    K8S,
    START_S,
    Cluster,
    at,
    read_once,
)

from goodput_ingest.run.ingest import ingest


def ready(cluster, node):
    """Make a node unknown from 900 s to 1,500 s."""
    gone = range(900, 1_500)
    values = {"true": lambda t: int(t not in gone), "unknown": lambda t: int(t in gone), "false": 0}
    for status, value in values.items():
        of_status = {"condition": "Ready", "status": status}
        cluster.add("kube_node_status_condition", value, node=node, **of_status)


def cordoned(first_s, last_s=9_999):
    def add(cluster, node):
        cluster.add("kube_node_spec_unschedulable", lambda t: int(first_s <= t < last_s), node=node)

    return add


def taint(key, first_s=905, last_s=1_200):
    def add(cluster, node):
        effect = {"key": key, "effect": "NoSchedule"}
        cluster.add("kube_node_spec_taint", 1, first_s, last_s, node=node, **effect)

    return add


def allocatable(cluster, node):
    gpu = {"node": node, "resource": "nvidia_com_gpu", "unit": "integer"}
    cluster.series = [  # in place of that of a node that is well
        one
        for one in cluster.series
        if (one["metric"]["__name__"], one["metric"].get("node"))
        != ("kube_node_status_allocatable", node)
    ]
    cluster.add("kube_node_status_allocatable", lambda t: 0 if t < 900 else 8, **gpu)


UNREACHABLE, SCALED = "node.kubernetes.io/unreachable", "ToBeDeletedByClusterAutoscaler"
# what a node's series say, and its states in the pieces of ten minutes that each poll reports alike
STATES = {
    "a node that is not ready is down": (
        ready, [("down", "NotReady", 900.482, 1_200), ("down", "NotReady", 1_200, 1_500.482)]),
    "a node that still is cordoned has no end": (
        cordoned(3_000),
        [("drained", "cordoned", 3_000, 3_600), ("drained", "cordoned", 3_600, None)]),
    "a state is reported in pieces": (
        cordoned(630, 1_900),
        [("drained", "cordoned", 630.482, 1_200), ("drained", "cordoned", 1_200, 1_800),
         ("drained", "cordoned", 1_800, 1_920.482)]),
    **{
        f"the taint {key} says that it is {state}": (
            taint(key, 905, 1_100), [(state, f"taint {key}", 930.482, 1_110.482)])
        for key, state in (
            (UNREACHABLE, "down"), (SCALED, "drained"), ("karpenter.sh/disrupted", "drained"))},
    "a taint that keeps others off GPUs says nothing": (taint("nvidia.com/gpu"), []),
    "a node with no allocatable GPU is down": (
        allocatable,
        [("down", "no GPU is allocatable", 0, 600),
         ("down", "no GPU is allocatable", 600, 900.482)]),
}  # fmt: skip
SHARES = {f"label_nvidia_com_gpu_{name}": text for name, text in
          {"replicas": "4", "product": "A10-SHARED"}.items()}  # fmt: skip
# what a node shows as its capacity, its labels, the models of its GPUs
PARTS = {
    "slots": (2, "nvidia_com_gpu", {"label_nvidia_com_gpu_product": "H100"}, ["H100"] * 2),
    "shares of time": (8, "nvidia_com_gpu", SHARES, ["A10"] * 2),
    "MIG instances": (
        14, "nvidia_com_mig_1g_10gb", {"label_nvidia_com_gpu_count": "2"}, [None] * 2,
    ),
    "MIG instances of an unknown number of GPUs": (14, "nvidia_com_mig_1g_10gb", {}, []),
}  # fmt: skip


@read_once
def all_cases(cluster):
    """Load a node for each case."""
    for name, (add, _) in STATES.items():
        cluster.node(name)
        add(cluster, name)
    for name, (count, resource, labels, _) in PARTS.items():
        cluster.node(name, count, resource, **labels)
    cluster.node("with telemetry").node("gpu-s01", 4, label_nvidia_com_gpu_replicas="2")
    cluster.add("DCGM_FI_DEV_GPU_UTIL", 5, UUID="GPU-1", Hostname="with telemetry", gpu="0")
    cluster.add("kube_node_status_capacity", 64, node="web-1", resource="cpu")
    cluster.add("kube_node_spec_unschedulable", 1, node="web-1")
    cluster.add("kube_node_status_capacity", 1, 0, 900, node="left", resource="nvidia_com_gpu")


@pytest.mark.parametrize("node", STATES)
def test_states_of_a_node(all_cases, node):
    rows = all_cases.read(
        """select state, reason, start_at, end_at from raw.node_states
        where node = $1 order by start_at""",
        [node],
    ).rows()

    assert rows == [(state, why, at(a), at(b)) for state, why, a, b in STATES[node][1]]


@pytest.mark.parametrize("node", PARTS)
def test_gpus_are_numbered_slots_and_parts_are_not_counted_as_gpus(all_cases, node):
    """Time-slicing multiplies the capacity that Kubernetes shows."""
    sql = "select gpu_uuid, slurm_index, gpu_model from raw.gpus where node = $1 order by all"

    assert all_cases.read(sql, [node]).rows() == [
        (f"{node}#{number}", number, model) for number, model in enumerate(PARTS[node][3])
    ]


def test_a_node_has_gpus_cpus_and_memory_and_one_without_gpus_is_left_out(all_cases):
    columns = "select gpus, cpus, memory_bytes from raw.nodes where node ="
    assert all_cases.read(f"{columns} 'with telemetry'").rows() == [(8, 96, 2**40)]
    assert all_cases.read("from raw.nodes where node = 'web-1'").is_empty()
    assert all_cases.read("from raw.node_states where node = 'web-1'").is_empty()


def test_gpus_that_telemetry_names_get_no_slots_and_those_of_a_node_that_left_end(all_cases):
    sql = "select gpu_uuid, valid_to_at from raw.gpus where node = $1"
    assert all_cases.read(sql, ["with telemetry"]).rows() == [("GPU-1", None)]
    assert all_cases.read(sql, ["left"]).rows() == [("left#0", at(900.482))]


def test_gpus_that_are_allocated_in_shares_have_these_as_parts(all_cases):
    assert all_cases.read(
        """select gpu_uuid, gpu_instance, profile, compute_slices, slices_of, slurm_index
        from raw.gpu_instances where starts_with(gpu_uuid, 'gpu-s01') order by slurm_index"""
    ).rows() == [(f"gpu-s01#{n // 2}", f"share.{n % 2}/2", "shared 1/2", 1, 2, n) for n in range(4)]


def of_replicas(cluster, replicas, first_s, last_s, resource="nvidia_com_gpu"):
    seen = {"node": "gpu-s01", "first_s": first_s, "last_s": last_s}
    count = 2 * int(replicas or 1)
    cluster.add("kube_node_status_capacity", count, resource=resource, unit="integer", **seen)
    reported = {"label_nvidia_com_gpu_replicas": replicas} if replicas else {}
    return cluster.add("kube_node_labels", label_team="a", **reported, **seen)


def parts(store, cluster, folder):
    """Return the parts of a GPU with when they begin and end, in seconds."""
    ingest(store, "kubernetes", [cluster.save(folder)], K8S)
    sql = """select gpu_instance, (epoch_ms(valid_from_at) - $1) // 1000,
            (epoch_ms(valid_to_at) - $1) // 1000
        from raw.gpu_instances where gpu_uuid = 'gpu-s01#0' order by 1, 2"""
    return store.read(sql, [START_S * 1000]).rows()


@pytest.mark.parametrize(("after", "taking_their_place"), [("1", 0), ("", 0), ("3", 3)])
def test_shares_end_where_whole_gpus_or_others_follow(store, tmp_path, after, taking_their_place):
    cluster = of_replicas(Cluster(), "2", 0, 1800, "nvidia_com_gpu_shared")
    of_replicas(cluster, after, 1830, None)

    assert parts(store, cluster, tmp_path) == sorted([
        *((f"share.{n}/2", 0, 1830) for n in (0, 1)),
        *((f"share.{n}/3", 1830, None) for n in range(taking_their_place)),
    ])  # fmt: skip
    assert store.read("select count(*) from raw.gpus").item() == 2


def test_shares_reported_in_one_reading_end_in_the_next(whole_store, tmp_path):
    """Then the GPU is a unit of its own again."""
    for number, (first_s, turn_s) in enumerate([(0, None), (900, 1800)]):
        cluster = of_replicas(Cluster(), "2", first_s, turn_s)
        if turn_s:
            of_replicas(cluster, "", turn_s + 30, None)
        (tmp_path / str(number)).mkdir()
        found = parts(whole_store, cluster, tmp_path / str(number))
    whole_store.build()

    assert found == [
        ("share.0/2", 0, None), ("share.0/2", 900, 1830),
        ("share.1/2", 0, None), ("share.1/2", 900, 1830),
    ]  # fmt: skip
    of_gpu = "where contains(gpu_uuid, 'gpu-s01#0')"
    ends = f"select count(*), count(valid_to_ms) from staging.stg_gpu_instances {of_gpu}"
    assert whole_store.read(ends).rows() == [(2, 2)]
    begins = "select gpu_instance, coalesce(start_ms >= $1, false) from intermediate.int_gpu_units"
    ended = (START_S + 1830) * 1000 + 482
    found = whole_store.read(f"{begins} {of_gpu} order by 1", [ended])
    assert found.rows() == [("", True), ("share.0/2", False), ("share.1/2", False)]


def test_all_nodes_were_watched_while_the_series_were_read(store, load):
    """In the hole nothing is known of free GPUs: they are not idle, they are unknown."""
    gpu = {"node": "gpu-a01", "resource": "nvidia_com_gpu"}
    cluster = Cluster().add("kube_node_status_capacity", 8, 0, 900, **gpu)
    load(cluster.add("kube_node_status_capacity", 8, 1_800, 2_100, **gpu))

    assert store.read(
        "select start_at, end_at from raw.node_states where node = '*' and state = 'up' order by 1"
    ).rows() == [(at(0), at(600)), (at(600), at(900.482)), (at(1_800), at(2_100.482))]

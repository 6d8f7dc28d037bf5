"""Nodes with GPUs: what they have, when they could not be used, when nobody looked."""

from datetime import UTC, datetime, timedelta

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

START = datetime(2026, 8, 20, 13)  # noqa: DTZ001 -- naive UTC


def at(seconds):
    return None if seconds is None else START + timedelta(seconds=seconds)


@pytest.fixture
def rows(store, tmp_path):
    """Read a cluster and return rows of a table."""

    def of(cluster, sql):
        ingest(store, "kubernetes", [cluster.save(tmp_path)], ReadOptions(cluster="k8s"))
        return store.read(sql).rows()

    return of


STATES = """select state, reason, min(start_at), case when bool_or(end_at is null) then null
        else max(end_at) end
    from raw.node_states where node = 'gpu-a01' group by all order by 3"""


def test_a_node_has_gpus_cpus_and_memory(cluster, rows):
    found = rows(cluster, "select node, gpus, cpus, memory_bytes from raw.nodes order by node")

    assert found == [("gpu-a01", 8, 96, 2**40), ("gpu-a02", 8, 96, 2**40)]


def test_nodes_without_gpus_are_left_out(cluster, rows):
    cluster.add("kube_node_status_capacity", 64, node="web-1", resource="cpu")
    cluster.add("kube_node_spec_unschedulable", 1, node="web-1")

    assert rows(cluster, "select * from raw.nodes where node = 'web-1'") == []
    assert rows(cluster, "select * from raw.node_states where node = 'web-1'") == []


def test_its_gpus_are_numbered_slots(new_cluster, rows):
    cluster = new_cluster().node("gpu-a01", 2, label_nvidia_com_gpu_product="NVIDIA-H100-80GB-HBM3")

    found = rows(cluster, "select gpu_uuid, node, slurm_index, gpu_model from raw.gpus order by 1")

    assert found == [
        ("gpu-a01#0", "gpu-a01", 0, "NVIDIA-H100-80GB-HBM3"),
        ("gpu-a01#1", "gpu-a01", 1, "NVIDIA-H100-80GB-HBM3"),
    ]


@pytest.mark.parametrize(
    ("count", "resource", "labels", "gpus"),
    [
        (8, "nvidia_com_gpu", {"replicas": "4", "product": "A10-SHARED"}, ["A10"] * 2),
        (14, "nvidia_com_mig_1g_10gb", {"count": "2"}, [None] * 2),
        (14, "nvidia_com_mig_1g_10gb", {}, []),
    ],
    ids=["shares of time", "MIG instances", "MIG instances of an unknown number of GPUs"],
)
def test_parts_are_not_counted_as_gpus(new_cluster, rows, count, resource, labels, gpus):
    """Time-slicing multiplies the capacity that Kubernetes shows."""
    said = {f"label_nvidia_com_gpu_{name}": value for name, value in labels.items()}
    cluster = new_cluster().node("gpu-s01", count, resource, **said)

    assert rows(cluster, "select gpu_model from raw.gpus") == [(model,) for model in gpus]


def test_gpus_that_are_allocated_in_shares_have_these_as_parts(new_cluster, rows):
    cluster = new_cluster().node("gpu-s01", 4, label_nvidia_com_gpu_replicas="2")

    assert rows(
        cluster,
        "select gpu_uuid, gpu_instance, profile, compute_slices, slices_of, slurm_index "
        "from raw.gpu_instances order by slurm_index",
    ) == [
        ("gpu-s01#0", "share.0/2", "shared 1/2", 1, 2, 0),
        ("gpu-s01#0", "share.1/2", "shared 1/2", 1, 2, 1),
        ("gpu-s01#1", "share.0/2", "shared 1/2", 1, 2, 2),
        ("gpu-s01#1", "share.1/2", "shared 1/2", 1, 2, 3),
    ]


PARTS = """select gpu_instance, (epoch_ms(valid_from_at) - $1) // 1000,
        (epoch_ms(valid_to_at) - $1) // 1000
    from raw.gpu_instances where gpu_uuid = 'gpu-s01#0' order by 1, 2"""


def of_replicas(cluster, replicas, first_s, last_s, resource="nvidia_com_gpu"):
    seen = {"node": "gpu-s01", "first_s": first_s, "last_s": last_s}
    count = 2 * int(replicas or 1)
    cluster.add("kube_node_status_capacity", count, resource=resource, unit="integer", **seen)
    reported = {"label_nvidia_com_gpu_replicas": replicas} if replicas else {}
    return cluster.add("kube_node_labels", label_team="a", **reported, **seen)


def parts(store, cluster, folder):
    ingest(store, "kubernetes", [cluster.save(folder)], ReadOptions(cluster="k8s"))
    return store.read(PARTS, [int(at(0).replace(tzinfo=UTC).timestamp() * 1000)]).rows()


@pytest.mark.parametrize("after", ["1", ""])
def test_shares_end_where_the_node_hands_out_whole_gpus_again(
    new_cluster, whole_store, tmp_path, after
):
    cluster = of_replicas(new_cluster(), "2", 0, 1800, "nvidia_com_gpu_shared")
    of_replicas(cluster, after, 1830, None)

    assert parts(whole_store, cluster, tmp_path) == [("share.0/2", 0, 1830), ("share.1/2", 0, 1830)]
    assert whole_store.read("select count(*) from raw.gpus").item() == 2
    whole_store.build()
    ended = int(at(1830).replace(tzinfo=UTC).timestamp() * 1000) + 482
    assert whole_store.read(
        "select gpu_instance, coalesce(start_ms >= $1, false) from intermediate.int_gpu_units "
        "where contains(gpu_uuid, 'gpu-s01#0') order by 1", [ended],
    ).rows() == [("", True), ("share.0/2", False), ("share.1/2", False)]  # fmt: skip


def test_other_shares_take_the_place_of_those_before(new_cluster, store, tmp_path):
    cluster = of_replicas(of_replicas(new_cluster(), "2", 0, 1800), "3", 1830, None)

    assert parts(store, cluster, tmp_path) == [
        ("share.0/2", 0, 1830), ("share.0/3", 1830, None), ("share.1/2", 0, 1830),
        ("share.1/3", 1830, None), ("share.2/3", 1830, None),
    ]  # fmt: skip


def test_shares_reported_in_one_reading_end_in_the_next(new_cluster, whole_store, tmp_path):
    for number, (first_s, turn_s) in enumerate([(0, None), (900, 1800)]):
        cluster = of_replicas(new_cluster(), "2", first_s, turn_s)
        if turn_s:
            of_replicas(cluster, "", turn_s + 30, None)
        (tmp_path / str(number)).mkdir()
        found = parts(whole_store, cluster, tmp_path / str(number))

    assert found == [
        ("share.0/2", 0, None), ("share.0/2", 900, 1830),
        ("share.1/2", 0, None), ("share.1/2", 900, 1830),
    ]  # fmt: skip
    reported = whole_store.read(
        "select count(*), count(valid_to_ms) from staging.stg_gpu_instances "
        "where contains(gpu_uuid, 'gpu-s01#0')"
    )
    assert reported.rows() == [(2, 2)]


def test_gpus_that_telemetry_names_get_no_slots(new_cluster, rows):
    cluster = new_cluster().node("gpu-a01").node("gpu-a02")
    cluster.add("DCGM_FI_DEV_GPU_UTIL", 5, UUID="GPU-1", Hostname="gpu-a01", gpu="0")

    found = rows(
        cluster, "select node, count(*), min(gpu_uuid) from raw.gpus group by 1 order by 1"
    )
    assert found == [("gpu-a01", 1, "GPU-1"), ("gpu-a02", 8, "gpu-a02#0")]


def test_a_node_that_is_not_ready_is_down(cluster, rows):
    for status in ("true", "false", "unknown"):
        cluster.add(
            "kube_node_status_condition",
            lambda t, status=status: int((status == "unknown") == (900 <= t < 1_500))
            if status != "false"
            else 0,
            node="gpu-a01", condition="Ready", status=status,
        )  # fmt: skip

    assert rows(cluster, STATES) == [("down", "NotReady", at(900.482), at(1_500.482))]


def test_a_node_that_still_is_cordoned_has_no_end(cluster, rows):
    cluster.add("kube_node_spec_unschedulable", lambda t: int(t >= 3_000), node="gpu-a01")

    assert rows(cluster, STATES) == [("drained", "cordoned", at(3_000), None)]


@pytest.mark.parametrize(
    ("taint", "state"),
    [
        ("node.kubernetes.io/unreachable", "down"),
        ("ToBeDeletedByClusterAutoscaler", "drained"),
        ("karpenter.sh/disrupted", "drained"),
    ],
)
def test_some_taints_say_that_a_node_is_not_to_be_used(cluster, rows, taint, state):
    cluster.add(
        "kube_node_spec_taint", 1, 905, 1_200, node="gpu-a01", key=taint, effect="NoSchedule"
    )

    assert rows(cluster, STATES) == [(state, f"taint {taint}", at(930.482), at(1_230.482))]


def test_a_taint_that_keeps_others_off_gpus_says_nothing(cluster, rows):
    cluster.add("kube_node_spec_taint", node="gpu-a01", key="nvidia.com/gpu", effect="NoSchedule")

    assert rows(cluster, STATES) == []


def test_a_node_with_no_allocatable_gpu_is_down(new_cluster, rows):
    gpu = {"node": "gpu-a01", "resource": "nvidia_com_gpu", "unit": "integer"}
    cluster = new_cluster().add("kube_node_status_capacity", 8, **gpu)
    cluster.add("kube_node_status_allocatable", lambda t: 0 if t < 900 else 8, **gpu)

    assert rows(cluster, STATES) == [("down", "no GPU is allocatable", at(0), at(900.482))]


def test_a_state_is_reported_in_pieces_that_every_poll_reports_alike(cluster, rows):
    cluster.add("kube_node_spec_unschedulable", lambda t: int(630 <= t < 1_900), node="gpu-a01")

    found = rows(
        cluster,
        "select start_at, end_at from raw.node_states where node = 'gpu-a01' order by start_at",
    )

    assert found == [
        (at(630.482), at(1_200)),
        (at(1_200), at(1_800)),
        (at(1_800), at(1_920.482)),
    ]


def test_all_nodes_were_watched_while_the_series_were_read(new_cluster, rows):
    """In the hole nothing is known of free GPUs: they are not idle, they are unknown."""
    gpu = {"node": "gpu-a01", "resource": "nvidia_com_gpu"}
    cluster = new_cluster().add("kube_node_status_capacity", 8, 0, 900, **gpu)
    cluster.add("kube_node_status_capacity", 8, 1_800, 2_100, **gpu)

    found = rows(
        cluster,
        "select start_at, end_at from raw.node_states where node = '*' and state = 'up' order by 1",
    )

    assert found == [
        (at(0), at(600)),
        (at(600), at(900.482)),
        (at(1_800), at(2_100.482)),
    ]


def test_slots_of_a_node_that_left_the_cluster_end(new_cluster, rows):
    cluster = new_cluster().node("gpu-a02")
    cluster.add("kube_node_status_capacity", 1, 0, 900, node="gpu-a01", resource="nvidia_com_gpu")

    found = rows(cluster, "select gpu_uuid, valid_to_at from raw.gpus where node = 'gpu-a01'")

    assert found == [("gpu-a01#0", at(900.482))]

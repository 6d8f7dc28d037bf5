"""Two clusters in one database whose nodes, GPUs' addresses and process ids are equal."""

import pytest
from tests.queries.conftest import Evidence, steps

from goodput_queries.scope import EVERYTHING

EAST_COMM, WEST_COMM, NORTH_COMM = (f"0x{digit}000000000000000" for digit in "123")
ADDRESS = "192.0.2.2"
PCI = ["00000000:1b:00.0", "00000000:9b:00.0"]


def gpus(cluster):
    listed = [
        {
            "cluster": cluster.name, "node": "n", "gpu_uuid": f"{cluster.name}-{i}",
            "gpu_index": i, "slurm_index": i, "pci_bus_id": PCI[i], "gpu_model": "h100",
            "valid_from_at": cluster.at(0),
        }
        for i in range(2)
    ]  # fmt: skip
    cluster.load("gpus", listed, "nvml")


def gang(cluster, start):
    """Load a job of two ranks that fails after ten steps of 10 s."""
    cluster.job("1", start, start + 100, ["n"], 2, "FAILED")
    for rank in range(2):
        cluster.events("train", steps(1, 10, start), rank=rank, host="n", pid=70 + rank)


def collectives(cluster, comm, exec_time_s, node="n"):
    """Load one AllReduce a step; its seconds by rank."""
    operations = [
        {
            "cluster": cluster.name, "node": node, "pid": 70 + rank, "comm_id": comm[:16],
            "rank": rank, "ranks": 2, "nodes": 1, "operation": "AllReduce", "is_p2p": False,
            "sequence_number": step, "message_bytes": 2**28, "busbw_bytes_per_s": 1e9,
            "exec_time_s": seconds, "started_at": cluster.at(10 * step + 5),
            "dumped_at": cluster.at(10 * step + 9),
        }
        for step in range(10)
        for rank, seconds in enumerate(exec_time_s)
    ]  # fmt: skip
    cluster.load("collectives", operations, "nccl-inspector")


def ranks(cluster, comm):
    """Load that NCCL gave rank 0 the second GPU, and rank 1 the first."""
    listed = [
        {
            "cluster": cluster.name, "comm_id": comm, "rank": rank, "ranks": 2,
            "node": ADDRESS, "pid": 70 + rank, "gpu_index": 1 - rank, "seen_at": cluster.at(20),
        }
        for rank in range(2)
    ]  # fmt: skip
    cluster.load("rank_map", listed, "nccl-ras")


def transport(cluster, comm, name):
    row = {"cluster": cluster.name, "comm_id": comm, "node": "n", "pid": 70, "transport": name}
    cluster.load("comm_transports", [row], "nccl-log")


def behind(cluster, comm):
    """Load that rank 1 launches one operation less than rank 0."""
    counts = [
        {
            "cluster": cluster.name, "comm_id": comm, "comm_ranks": 2, "ts": cluster.at(second),
            "operation": "AllReduce", "launched": 40 - rank, "rank_count": 1, "ranks": [rank],
        }
        for second in (40, 60, 80)
        for rank in range(2)
    ]  # fmt: skip
    cluster.load("comm_counts", counts, "nccl-ras")


def labelled(cluster, until):
    """Load a GPU of another node that bears a label until its last reading."""
    gpu = f"{cluster.name}-label"
    listed = {"cluster": cluster.name, "node": "l", "gpu_uuid": gpu, "gpu_index": 0}
    cluster.load("gpus", [{**listed, "valid_from_at": cluster.at(0)}], "dcgm")
    owner = {
        "gpu_uuid": gpu, "gpu_instance": "", "kind": "pod", "owner": "nlp/a", "container": "",
        "first_seen_at": cluster.at(0), "last_seen_at": cluster.at(until),
    }  # fmt: skip
    cluster.load("gpu_owners", [owner], "dcgm")
    read = [
        {
            "gpu_uuid": gpu, "gpu_instance": "", "ts": cluster.at(second),
            "engine_active_ratio": 0.9, "is_flagged": False,
        }
        for second in cluster.every(0, until)
    ]  # fmt: skip
    cluster.load("gpu_samples", read, "dcgm")


def meter(cluster, power_w):
    read = [
        {"cluster": cluster.name, "node": "n", "ts": cluster.at(second), "power_w": power_w}
        for second in cluster.every(0, 100)
    ]
    cluster.load("node_samples", read, "ipmi")


@pytest.fixture(scope="module")
def store(new_store):
    """Give east, of which NCCL and the kernel log say something, and west, which is like it.

    Of north there are only NCCL's own records.
    """
    store = new_store()
    east, west = Evidence(store, "east"), Evidence(store, "west")
    for cluster, start in ((east, 0), (west, 2)):
        gpus(cluster)
        gang(cluster, start)
    collectives(east, EAST_COMM, [3.0, 1.0])
    ranks(east, EAST_COMM)
    behind(east, EAST_COMM)
    north = Evidence(store, "north")
    collectives(north, NORTH_COMM, [1.0, 1.0], node="m")
    ranks(north, NORTH_COMM)
    collectives(Evidence(store, "south"), WEST_COMM, [1.0, 1.0])
    error = {"cluster": "east", "node": "n", "pci_bus_id": PCI[0], "ts": east.at(99)}
    error |= {"ts_precision": "exact", "kind": "xid", "code": 79}
    east.load("gpu_events", [error], "kernel-log")
    transport(east, EAST_COMM, "NET/IB")
    transport(west, WEST_COMM, "NET/Socket")
    for cluster, name, until in ((east, "east-label", 1000), (west, "west-label", 3000)):
        labelled(Evidence(store, name), until)
        meter(cluster, 1000)
    store.build()
    yield store
    store.close()


@pytest.fixture
def rows(store):
    """Return a reader of rows."""

    def read(sql, scope=EVERYTHING):
        return store.read(sql, scope=scope).rows()

    return read


def test_nccl_names_the_gpus_of_its_own_clusters_ranks(rows):
    found = rows(
        "select cluster, rank, gpu_uuid, method from intermediate.int_rank_gpus order by all"
    )

    assert found == [
        ("east", 0, "east-1", "mapped"),
        ("east", 1, "east-0", "mapped"),
        ("west", 0, "west-0", "assumed"),
        ("west", 1, "west-1", "assumed"),
    ]


def test_collectives_are_in_the_steps_of_their_own_cluster(rows):
    found = rows(
        """select split_part(attempt_key, '/', 1), sum(comm_at_most_ms)
        from intermediate.int_rank_step_losses group by all order by all"""
    )

    assert found == [("east", 40_000)]


def test_a_bandwidth_is_of_a_run_of_its_own_cluster(rows):
    found = rows("select cluster, run_key from marts.comm_bandwidth order by all")

    assert found == [("east", "east/train"), ("north", None), ("south", None)]


def test_a_transport_is_of_a_run_of_its_own_cluster(rows):
    found = rows("select cluster, transport, run_key from marts.transports order by all")

    assert found == [("east", "NET/IB", "east/train"), ("west", "NET/Socket", "west/train")]


def test_a_hang_is_of_an_attempt_of_its_own_cluster(rows):
    found = rows(
        """select distinct cluster, split_part(attempt_key, '/', 1), gpu_uuid
        from intermediate.int_hang_ranks order by all"""
    )

    assert found == [("east", "east", "east-0"), ("east", "east", "east-1")]


def test_an_error_at_an_address_is_of_the_gpu_of_its_own_cluster(rows):
    events = rows("select cluster, gpu_uuid from marts.gpu_events")
    xids = rows("select cluster, gpu_uuid from intermediate.int_attempt_xids")
    chain = rows(
        """select split_part(attempt_key, '/', 1), gpu_uuid
        from marts.failure_chains where what like '%79%'"""
    )

    assert events == xids == chain == [("east", "east-0")]


def test_collectives_of_unknown_ranks_are_counted_by_cluster(rows):
    found = rows(
        "select n, example from marts.data_quality where kind = 'collectives of unknown ranks'"
    )

    assert found == [(4, "m, pid 70")]


def test_an_address_is_a_node_of_its_own_cluster(rows):
    found = rows("select distinct cluster, node from staging.stg_rank_map order by all")

    assert found == [("east", "n"), ("north", "m")]


def test_a_label_lasts_while_its_own_cluster_is_read_no_further(rows):
    found = rows("select cluster, end_ms from staging.stg_owner_holds order by all")

    assert found == [("east-label", None), ("west-label", None)]


def test_a_meter_is_of_the_node_of_its_own_cluster(rows):
    found = rows("select cluster, node, energy_mj from intermediate.int_node_energy order by all")

    assert found == [("east", "n", 100_000_000), ("west", "n", 100_000_000)]

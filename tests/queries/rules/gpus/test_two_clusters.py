"""Two clusters in one database whose nodes, GPUs' addresses and process ids are equal."""

from tests.queries.conftest import Evidence, built_once, read_from_world, steps

EAST_COMM, WEST_COMM, NORTH_COMM = (f"0x{digit}000000000000000" for digit in "123")
PCI = ["00000000:1b:00.0", "00000000:9b:00.0"]


def gpus(cluster):
    listed = [
        {"gpu_uuid": f"{cluster.name}-{i}", "gpu_index": i, "slurm_index": i, "pci_bus_id": pci}
        for i, pci in enumerate(PCI)
    ]
    cluster.add("gpus", *listed, source="nvml", node="n", gpu_model="h100", valid_from_at=0)


def gang(cluster, start):
    """Load a job of two ranks that fails after ten steps of 10 s."""
    cluster.job("1", start, start + 100, ["n"], 2, "FAILED")
    for rank in range(2):
        cluster.events("train", steps(1, 10, start), rank=rank, host="n", pid=70 + rank)


def collectives(cluster, comm, exec_time_s, node="n"):
    """Load one AllReduce a step; its seconds by rank."""
    of = {"nodes": 1, "message_bytes": 2**28, "busbw_bytes_per_s": 1e9, "comm_id": comm[:16]}
    cluster.all_reduces(exec_time_s, range(5, 105, 10), pid=70, node=node, **of)


def ranks(cluster, comm):
    """Load that NCCL gave rank 0 the second GPU, and rank 1 the first."""
    listed = [{"rank": rank, "pid": 70 + rank, "gpu_index": 1 - rank} for rank in range(2)]
    of = {"comm_id": comm, "ranks": 2, "node": "192.0.2.2", "seen_at": 20}
    cluster.add("rank_map", *listed, source="nccl-ras", **of)


def transport(cluster, comm, name):
    row = {"comm_id": comm, "node": "n", "pid": 70, "transport": name}
    cluster.add("comm_transports", row, source="nccl-log")


def behind(cluster, comm):
    """Load that rank 1 launches one operation less than rank 0."""
    counts = [{"ts": second, "launched": 40 - rank, "ranks": [rank]} for second in (40, 60, 80)
              for rank in range(2)]  # fmt: skip
    of = {"comm_id": comm, "comm_ranks": 2, "operation": "AllReduce", "rank_count": 1}
    cluster.add("comm_counts", *counts, source="nccl-ras", **of)


def labelled(cluster, until):
    """Load a GPU of another node that bears a label until its last reading."""
    cluster.telemetry("l", 1, "dcgm")
    cluster.label(cluster.gpu("l-0"), "nlp/a", 0, until)
    cluster.samples("l-0", cluster.every(0, until), lambda _: True)


def host(cluster, node, name):
    read = {"ts": 0, "memory_total_bytes": 1}
    cluster.add("node_samples", read, source="node-exporter", node=node, cluster=name)


@built_once
def world(evidence):
    """Give east, of which NCCL and the kernel log say something, and west, which is like it.

    Of north there are only NCCL's own records.
    """
    store = evidence.store
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
    east.xid("n", 79, 99, pci_bus_id=PCI[0])
    transport(east, EAST_COMM, "NET/IB")
    transport(west, WEST_COMM, "NET/Socket")
    for cluster, name, until in ((east, "east-label", 1000), (west, "west-label", 3000)):
        labelled(Evidence(store, name), until)
        cluster.host("n", cluster.every(0, 100), "ipmi", power_w=1000)
    for name, node in (("up", "u"), ("down", "u.down.example")):
        cluster = Evidence(store, name)
        cluster.telemetry(node, 1, "dcgm")
        host(cluster, node, None)
    Evidence(store, "up").telemetry("v", 1, "dcgm")
    host(east, "v.example", "elsewhere")
    Evidence(store, "up").job("1", 0, 100, ["u"], 1)
    for name in ("left", "right"):
        Evidence(store, name).job("1", 0, 100, [f"w.{name}.example"], 1)
        host(east, "w", name)
    host(east, "w", None)


# what is of its own cluster: the query, its rows
test_each_is_of_its_own_cluster = read_from_world({
    "GPUs of ranks": (
        "select cluster, rank, gpu_uuid, method from intermediate.int_rank_gpus order by all",
        [("east", 0, "east-1", "mapped"), ("east", 1, "east-0", "mapped"),
         ("west", 0, "west-0", "assumed"), ("west", 1, "west-1", "assumed")]),
    "collectives in steps": (
        """select split_part(attempt_key, '/', 1), sum(comm_at_most_ms)
        from intermediate.int_rank_step_losses group by all order by all""",
        [("east", 40_000)]),
    "bandwidths of runs": (
        "select cluster, run_key from marts.comm_bandwidth order by all",
        [("east", "east/train"), ("north", None), ("south", None)]),
    "transports of runs": (
        "select cluster, transport, run_key from marts.transports order by all",
        [("east", "NET/IB", "east/train"), ("west", "NET/Socket", "west/train")]),
    "hangs of attempts": (
        """select distinct cluster, split_part(attempt_key, '/', 1), gpu_uuid
        from intermediate.int_hang_ranks order by all""",
        [("east", "east", "east-0"), ("east", "east", "east-1")]),
    "collectives of unknown ranks": (
        "select n, example from marts.data_quality where kind = 'collectives of unknown ranks'",
        [(4, "m, pid 70")]),
    "nodes of addresses": (
        "select distinct cluster, node from staging.stg_rank_map order by all",
        [("east", "n"), ("north", "m")]),
    "labels, which last while no cluster but their own is read further": (
        "select cluster, end_ms from staging.stg_owner_holds order by all",
        [("east-label", None), ("west-label", None)]),
    "a node with a domain, where another cluster has its short name": (
        """select cluster, node from staging.stg_gpus where node like 'u%'
        union all
        select cluster, node from staging.stg_host_samples where node not like 'w%'
        order by all""",
        [("down", "u.down.example"), ("down", "u.down.example"), ("elsewhere", "v.example"),
         ("up", "u"), ("up", "u")]),
    "a host by its short name, which nodes of two clusters have": (
        "select cluster, node from staging.stg_host_samples where node like 'w%' order by all",
        [("default", "w"), ("left", "w.left.example"), ("right", "w.right.example")]),
    "an error at an address: the event": (
        "select cluster, gpu_uuid from marts.gpu_events", [("east", "east-0")]),
    "an error at an address: the attempt": (
        "select cluster, gpu_uuid from intermediate.int_attempt_xids", [("east", "east-0")]),
    "an error at an address: the chain": (
        """select split_part(attempt_key, '/', 1), gpu_uuid from marts.failure_chains
        where what like '%79%'""", [("east", "east-0")]),
    "meters of nodes": (
        "select cluster, node, energy_mj from intermediate.int_node_energy order by all",
        [("east", "n", 100_000_000), ("west", "n", 100_000_000)]),
})  # fmt: skip

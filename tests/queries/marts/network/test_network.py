"""Bandwidth of collectives against what is to be expected; nodes and transports that stand out."""

import pytest
from tests.queries.conftest import built_together

from goodput_queries.scope import Scope

GB = 1e9
MIB = 2**20
H200 = "NVIDIA H200"


def four_nodes(cluster):
    """Load four nodes of eight GPUs."""
    for node in ("a", "b", "c", "d"):
        cluster.node(node, 8, model=H200)


def collectives(
    cluster, comm, nodes, busbw, *, size=256 * MIB, operation="AllReduce", first=0, second=0.0
):
    """Load one operation for each bandwidth (in GB/s) on two ranks a node; the last rank is late.

    The record of a rank that waited has half of the bandwidth.
    """
    ranks = [(node, 2 * place + slot) for place, node in enumerate(nodes) for slot in range(2)]
    rows = [
        {
            "node": node, "pid": cluster.first_pid + rank, "rank": rank,
            "sequence_number": first + number, "busbw_bytes_per_s": gb * GB / (1 if rank else 2),
            "dumped_at": second + number,
        }
        for number, gb in enumerate(busbw)
        for node, rank in ranks
    ]  # fmt: skip
    cluster.add(
        "collectives", *rows, comm_id=f"{cluster.name}-{comm}", ranks=len(ranks),
        nodes=len(set(nodes)), operation=operation, is_p2p=False, message_bytes=size,
        exec_time_s=0.001,
    )  # fmt: skip


def benchmark(cluster, number, busbw, *, size=256 * MIB, nodes=("a", "b"), second=0, wrong=0):
    cluster.add(
        "nccl_benchmarks", *(
            {"is_in_place": is_in_place, "busbw_bytes_per_s": busbw * GB - is_in_place}
            for is_in_place in (False, True)
        ),
        source=f"bench-{number}", benchmark_id=f"{cluster.name}-{number}", operation="AllReduce",
        size_bytes=size, dtype="float", reduction="sum", root=-1, repeat=0, is_cpu_time=False,
        wrong=wrong, ranks=4, nodes=list(nodes), gpu_model=H200, started_at=second,
    )  # fmt: skip


def comms(cluster, scope=None):
    read = cluster.read(
        "select * from marts.comm_bandwidth order by comm_id, operation, size_from_bytes",
        **({"scope": scope} if scope else {}),
    )
    return read.to_dicts()


@built_together
def test_an_operation_has_the_bandwidth_of_the_rank_that_did_not_wait(cluster):
    four_nodes(cluster)
    collectives(cluster, "0x1", ["a", "b"], [300.0, 340.0, 320.0])
    yield
    (row,) = comms(cluster)
    assert (row["p50_bytes_per_s"], row["operations"], row["coverage_ratio"]) == (320e9, 3, 1.0)
    assert (row["node_names"], row["ranks"], row["nodes"]) == (["a", "b"], 4, 2)


@built_together
def test_sizes_of_an_all_gather_are_those_of_nccl_tests(cluster):
    four_nodes(cluster)
    collectives(cluster, "0x1", ["a"], [300.0], size=16 * MIB, operation="AllGather")
    yield
    assert [row["size_from_bytes"] for row in comms(cluster)] == [32 * MIB]


@built_together
def test_what_the_sites_own_nccl_tests_reach_is_expected(cluster):
    """The median of the best of each run of the same shape; a run with wrong values is none."""
    four_nodes(cluster)
    for number, busbw in enumerate((360.0, 380.0, 400.0)):
        benchmark(cluster, number, busbw)
    benchmark(cluster, 8, 900.0, nodes=("a", "b", "c"))
    benchmark(cluster, 9, 990.0, wrong=4)
    collectives(cluster, "0x1", ["a", "b"], [285.0])
    collectives(cluster, "0x2", ["c", "d"], [370.0])
    yield
    slow, good = comms(cluster)
    assert (slow["expected_bytes_per_s"], slow["expected_by"]) == (380e9, "nccl-tests")
    assert (slow["is_slow"], slow["of_expected_ratio"]) == (True, 0.75)
    assert good["is_slow"] is False


@built_together
def test_a_published_figure_is_expected_where_the_site_has_none(cluster):
    """H200, eight ranks of one node: of two links the slower counts; others have no figure."""
    four_nodes(cluster)
    eight = ["a"] * 4
    collectives(cluster, "0x1", eight, [400.0])
    collectives(cluster, "0x2", ["a", "b"], [400.0])
    yield
    one_node, two_nodes = comms(cluster)
    assert (one_node["expected_by"], one_node["expected_bytes_per_s"]) == ("reference", 367e9)
    assert one_node["expected_source"].endswith("NVLS off, NVLink ring")
    assert one_node["is_slow"] is False
    assert (two_nodes["expected_by"], two_nodes["is_slow"]) == (None, None)


@built_together
def test_without_a_curve_a_communicator_is_compared_with_its_peers(cluster):
    four_nodes(cluster)
    for number, pair in enumerate((["a", "b"], ["a", "c"], ["b", "c"], ["c", "d"])):
        collectives(cluster, f"0x{number}", pair, [100.0 if "d" in pair else 200.0])
    yield
    found = comms(cluster)
    assert [row["is_slow"] for row in found] == [False, False, False, True]
    assert found[-1]["of_expected_ratio"] == 0.5
    assert found[-1]["expected_bytes_per_s"] is None


@built_together
def test_operations_outside_the_window_do_not_count(cluster):
    four_nodes(cluster)
    collectives(cluster, "0x1", ["a", "b"], [300.0])
    collectives(cluster, "0x1", ["a", "b"], [10.0], first=9, second=7200)
    yield
    window = Scope(from_ms=1_800_000_000_000, to_ms=1_800_003_600_000)
    (row,) = comms(cluster, window)
    assert row["p50_bytes_per_s"] == 300e9
    (all_day,) = comms(cluster)
    assert (all_day["operations"], all_day["coverage_ratio"]) == (2, 0.2)


@built_together
def test_all_communicators_of_a_shape_make_one_row(cluster):
    four_nodes(cluster)
    benchmark(cluster, 1, 400.0)
    collectives(cluster, "0x1", ["a", "b"], [100.0, 100.0])
    collectives(cluster, "0x2", ["c", "d"], [400.0, 400.0, 400.0])
    yield
    (row,) = cluster.read("select * from marts.bus_bandwidth").to_dicts()
    assert (row["communicators"], row["slow_communicators"], row["operations"]) == (2, 1, 5)
    assert (row["p50_bytes_per_s"], row["of_expected_ratio"]) == (400e9, 1.0)
    assert row["p1_bytes_per_s"] < 120e9


@built_together
def test_a_slow_node_is_confirmed_by_trouble_of_its_link_alone(cluster):
    """`d` is slow with everyone, `b` with `d` alone; a port of `b` had errors."""
    four_nodes(cluster)
    benchmark(cluster, 1, 200.0)
    for number, (pair, busbw) in enumerate(
        [(["a", "b"], 200.0), (["a", "c"], 200.0), (["a", "d"], 90.0), (["b", "d"], 80.0)]
    ):
        collectives(cluster, f"0x{number}", pair, [busbw])
    cluster.add(
        "link_samples", *({"ts": 60 * n, "symbol_errors": 5 * n} for n in range(3)), node="b",
        kind="infiniband", device="mlx5_0", port="1", is_up=True,
    )  # fmt: skip
    yield
    found = cluster.read("select * from marts.slow_nodes order by node")
    assert found.select("node", "slow_communicators", "verdict", "link_trouble").rows() == [
        ("a", 1, "Not confirmed", None),
        ("b", 1, "Confirmed", "errors"),
        ("d", 2, "Likely", None),
    ]


@pytest.mark.parametrize(
    ("busbw", "verdict"),
    [
        pytest.param([60.0, 61.0, 60.0], "Likely", id="a limit"),
        pytest.param([60.0, 61.0, 198.0], "Not confirmed", id="others are in the way at times"),
    ],
)
@built_together
def test_a_run_that_never_gets_what_others_get_between_the_same_nodes_is_limited(
    cluster, busbw, verdict
):
    four_nodes(cluster)
    for first, size in ((0, 256 * MIB), (10, 1024 * MIB)):
        benchmark(cluster, size, 200.0, size=size)
        collectives(cluster, "0x1", ["a", "b"], [200.0, 199.0], size=size, first=first)
        collectives(cluster, "0x2", ["a", "b"], busbw, size=size, first=first)
        collectives(cluster, "0x3", ["a", "c"], [200.0], size=size, first=first)
    yield
    found = cluster.read(
        "select node, slow_communicators, communicators, verdict from marts.slow_nodes"
    )
    assert sorted(found.rows()) == [("a", 1, 3, verdict), ("b", 1, 2, verdict)]


@built_together
def test_a_benchmark_is_compared_with_the_one_of_its_shape_before_it(cluster):
    four_nodes(cluster)
    benchmark(cluster, 1, 400.0, second=0)
    benchmark(cluster, 2, 300.0, second=86_400)
    benchmark(cluster, 3, 200.0, second=86_500, nodes=("c", "d"))
    yield
    found = cluster.read("select * from marts.nccl_benchmarks order by run_at")
    assert found["busbw_bytes_per_s"].to_list() == [400e9, 300e9, 200e9]
    assert found["change_ratio"].to_list() == [None, -0.25, None]


@built_together
def test_link_errors_of_gpus_are_rises_of_counters_in_hours_of_the_window(cluster):
    four_nodes(cluster)
    counts = {"a": [(0, 5), (1_800, 7), (3_700, 7), (7_300, 2)], "b": [(0, 4), (7_300, 4)]}
    for node, values in counts.items():
        cluster.counted(cluster.gpu(f"{node}#0"), "pcie_replay_total", values)
    cluster.watched(7_400)
    yield

    def errors(**window):
        rows = cluster.read(
            "select node, errors, last_at from marts.gpu_link_errors", scope=Scope(**window)
        )
        return rows.rows()

    assert errors() == [("a", 4, cluster.at(10_800))]  # 2, and 2 after a reset
    assert errors(to_ms=1_800_000_000_000 + 3_600_000) == [("a", 2, cluster.at(3_600))]
    assert errors(from_ms=1_800_000_000_000 + 3_600_000, to_ms=1_800_000_000_000 + 7_200_000) == []

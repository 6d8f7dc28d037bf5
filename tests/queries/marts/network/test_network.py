"""Bandwidth of collectives against what is to be expected; nodes and transports that stand out."""

import pytest
from tests.queries.conftest import START_MS, at, shown_by

from goodput_queries.scope import Scope

GB = 1e9
MIB = 2**20
H200 = "NVIDIA H200"


def four_nodes(cluster):
    """Load four nodes of eight GPUs."""
    for node in ("a", "b", "c", "d"):
        cluster.node(node, 8, model=H200)


def benchmark(cluster, number, busbw, *, size=256 * MIB, nodes=("a", "b"), second=0, wrong=0):
    cluster.add("nccl_benchmarks",
                *({"is_in_place": is_in_place, "busbw_bytes_per_s": busbw * GB - is_in_place}
                  for is_in_place in (False, True)), source=f"bench-{number}",
                benchmark_id=f"{cluster.name}-{number}", operation="AllReduce", size_bytes=size,
                dtype="float", reduction="sum", root=-1, repeat=0, is_cpu_time=False, wrong=wrong,
                ranks=4, nodes=list(nodes), gpu_model=H200, started_at=second)  # fmt: skip


PAIRS = (["a", "b"], ["a", "c"], ["b", "c"], ["c", "d"])
COMMS = "from marts.comm_bandwidth order by comm_id, operation, size_from_bytes"
# what it shows: what four nodes report, what is read of it
test_bandwidths = shown_by({
    "an operation has the bandwidth of the rank that did not wait": (
        lambda c: c.collectives("0x1", ["a", "b"], [300.0, 340.0, 320.0]),
        f"select p50_bytes_per_s, operations, coverage_ratio, node_names, ranks, nodes {COMMS}",
        [(320e9, 3, 1.0, ["a", "b"], 4, 2)]),
    "sizes of an all-gather are those of nccl-tests": (
        lambda c: c.collectives("0x1", ["a"], [300.0], size=16 * MIB, operation="AllGather"),
        f"select size_from_bytes {COMMS}", [(32 * MIB,)]),
    # the median of the best of each run of the same shape; a run with wrong values is none
    "what the site's own nccl-tests reach is expected": (
        lambda c: [
            *(benchmark(c, number, busbw) for number, busbw in enumerate((360.0, 380.0, 400.0))),
            benchmark(c, 8, 900.0, nodes=("a", "b", "c")), benchmark(c, 9, 990.0, wrong=4),
            c.collectives("0x1", ["a", "b"], [285.0]), c.collectives("0x2", ["c", "d"], [370.0])],
        f"select expected_bytes_per_s, expected_by, is_slow, round(of_expected_ratio, 2) {COMMS}",
        [(380e9, "nccl-tests", True, 0.75), (380e9, "nccl-tests", False, 0.97)]),
    # H200, eight ranks of one node: of two links the slower counts; others have no figure
    "a published figure is expected where the site has none": (
        lambda c: [c.collectives("0x1", ["a"] * 4, [400.0]),
                   c.collectives("0x2", ["a", "b"], [400.0])],
        f"select expected_by, expected_bytes_per_s, right(expected_source, 21), is_slow {COMMS}",
        [("reference", 367e9, "NVLS off, NVLink ring", False), (None, None, None, None)]),
    "without a curve a communicator is compared with its peers": (
        lambda c: [c.collectives(f"0x{number}", pair, [100.0 if "d" in pair else 200.0])
                   for number, pair in enumerate(PAIRS)],
        f"select is_slow, of_expected_ratio, expected_bytes_per_s {COMMS}",
        [*[(False, 1, None)] * 3, (True, 0.5, None)]),
    "all communicators of a shape make one row": (
        lambda c: [benchmark(c, 1, 400.0), c.collectives("0x1", ["a", "b"], [100.0, 100.0]),
                   c.collectives("0x2", ["c", "d"], [400.0, 400.0, 400.0])],
        "select communicators, slow_communicators, operations, p50_bytes_per_s, of_expected_ratio, "
        "p1_bytes_per_s < 120e9 from marts.bus_bandwidth", [(2, 1, 5, 400e9, 1.0, True)]),
    # `d` is slow with everyone, `b` with `d` alone; a port of `b` had errors
    "a slow node is confirmed by trouble of its link alone": (
        lambda c: [
            benchmark(c, 1, 200.0), c.collectives("0x0", ["a", "b"], [200.0]),
            c.collectives("0x1", ["a", "c"], [200.0]), c.collectives("0x2", ["a", "d"], [90.0]),
            c.collectives("0x3", ["b", "d"], [80.0]),
            c.add("link_samples", *({"ts": 60 * n, "symbol_errors": 5 * n} for n in range(3)),
                  node="b", kind="infiniband", device="mlx5_0", port="1", is_up=True)],
        "select node, slow_communicators, verdict, link_trouble from marts.slow_nodes order by 1",
        [("a", 1, "Not confirmed", None), ("b", 1, "Confirmed", "errors"),
         ("d", 2, "Likely", None)]),
    "a benchmark is compared with the one of its shape before it": (
        lambda c: [benchmark(c, 1, 400.0), benchmark(c, 2, 300.0, second=86_400),
                   benchmark(c, 3, 200.0, second=86_500, nodes=("c", "d"))],
        "select busbw_bytes_per_s, change_ratio from marts.nccl_benchmarks order by run_at",
        [(400e9, None), (300e9, -0.25), (200e9, None)]),
    "operations outside the window do not count": (
        lambda c: [c.collectives("0x1", ["a", "b"], [300.0]),
                   c.collectives("0x1", ["a", "b"], [10.0], first=9, second=7200)],
        lambda c: [c.read(f"select p50_bytes_per_s, operations, coverage_ratio {COMMS}",
                          scope).row(0)
                   for scope in (Scope(START_MS, START_MS + 3_600_000), Scope())],
        [(300e9, 1, 1.0), (pytest.approx(155e9), 2, 0.2)]),
}, before=four_nodes)  # fmt: skip


def two_sizes(cluster, busbw):
    """Load what others get between the nodes of a run, in two sizes."""
    for first, size in ((0, 256 * MIB), (10, 1024 * MIB)):
        benchmark(cluster, size, 200.0, size=size)
        cluster.collectives("0x1", ["a", "b"], [200.0, 199.0], size=size, first=first)
        cluster.collectives("0x2", ["a", "b"], busbw, size=size, first=first)
        cluster.collectives("0x3", ["a", "c"], [200.0], size=size, first=first)


test_a_run_that_never_gets_what_others_get_between_the_same_nodes_is_limited = shown_by({
    "a limit": ([60.0, 61.0, 60.0], [("a", 1, 3, "Likely"), ("b", 1, 2, "Likely")]),
    "others are in the way at times": (
        [60.0, 61.0, 198.0], [("a", 1, 3, "Not confirmed"), ("b", 1, 2, "Not confirmed")]),
}, before=four_nodes, load=two_sizes,
    read="select node, slow_communicators, communicators, verdict from marts.slow_nodes "
    "order by 1")  # fmt: skip


def test_link_errors_of_gpus_are_rises_of_counters_in_hours_of_the_window(cluster):
    four_nodes(cluster)
    counts = {"a": [(0, 5), (1_800, 7), (3_700, 7), (7_300, 2)], "b": [(0, 4), (7_300, 4)]}
    for node, values in counts.items():
        cluster.counted(cluster.gpu(f"{node}#0"), "pcie_replay_total", values)
    cluster.watched(7_400)
    yield

    def errors(**window):
        sql = "select node, errors, last_at from marts.gpu_link_errors"
        return cluster.read(sql, Scope(**window)).rows()

    assert errors() == [("a", 4, cluster.at(10_800))]  # 2, and 2 after a reset
    assert errors(to_ms=START_MS + 3_600_000) == [("a", 2, cluster.at(3_600))]
    assert errors(from_ms=START_MS + 3_600_000, to_ms=START_MS + 7_200_000) == []


HOUR_S = 3_600


def port(cluster, node, gb_per_s, *, speed=12.5, second=0, device="eth0", source="test"):
    """Load an hour of readings of a port that sends so many GB/s."""
    sent = {"tx_bytes": lambda s: int((s - second) * gb_per_s * GB), "rx_bytes": lambda s: s}
    cluster.series("link_samples", range(second, second + HOUR_S, 600), sent, source=source,
                   node=node, kind="ethernet", device=device, port="", is_up=True,
                   speed_bytes_per_s=None if speed is None else speed * GB)  # fmt: skip


def line_rates(gpus, *ports):
    """Return what loads a node whose ports send 1 GB/s for each of its GPUs."""
    return lambda c: [c.node("a", gpus), *(port(c, "a", float(gpus), **of) for of in ports)]


LINE_RATES = "select device, line_rate_ratio, bytes_per_s from marts.line_rates order by device"
UNKNOWN, TWICE = {"speed": None}, [{"device": "eth1"}, {"device": "eth1", "source": "other"}]
test_line_rates_of_ports = shown_by({
    "8 GPUs that send 1 GB/s each share a port of 100 Gbit/s": (
        line_rates(8, {}), LINE_RATES, [("eth0", *map(pytest.approx, (0.64, 8 * GB)))]),
    "a port without a speed has no share, and two sources are one port": (
        line_rates(1, UNKNOWN, *TWICE), LINE_RATES,
        [("eth0", None, None), ("eth1", *map(pytest.approx, (0.08, GB)))]),
    # 18 nodes: four GPUs of 1.8 TB/s of NVLink, four ports of 400 Gbit/s; more traffic at last
    "a rack has the sum of its ports in its busiest hour": (
        lambda c: [port(c, "n0", 1.0, speed=50),
                   *([c.node(n, 4, model="GB200"), c.add("node_racks", node=n, rack="r"),
                      *(port(c, n, 30.0, speed=50, second=HOUR_S, device=f"eth{d}")
                        for d in range(4))] for n in map("n{}".format, range(18)))],
        "select rack, nodes, ports, busiest_at, line_bytes_per_s, gpu_link_bytes_per_s, "
        "round(line_rate_ratio, 6) from marts.rack_line_rates",
        [("r", 18, 72, at(HOUR_S), 3_600 * GB, 129_600 * GB, 0.6)]),
})  # fmt: skip

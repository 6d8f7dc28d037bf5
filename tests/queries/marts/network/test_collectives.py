"""Collectives and communication inside steps: by what the site has, how fast, when they ran."""

import pytest
from tests.queries.conftest import built_in, each, shown_by, steps
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build

H100 = "NVIDIA H100"
KIB, MIB = 2**10, 2**20
SIZES = tuple(KIB << 4 * power for power in range(5))


def inspected(cluster, *busbw, size=MIB, first=0):
    """Load operations of two ranks of a node."""
    cluster.collectives("0x1", ["a"], busbw, size=size, first=first, second=10.0)


def logged(cluster, algorithm, protocol, *, size=MIB):
    """Load what rank 0 logs of the tuning."""
    cluster.add("comm_algorithms", node="a", pid=cluster.first_pid, operation="AllReduce",
                message_bytes=size, algorithm=algorithm, protocol=protocol)  # fmt: skip


def summary(cluster, algorithm, busbw, second):
    cluster.add("collective_summaries", node="a", gpu_uuid=cluster.gpu("a#0"), ts=float(second),
                nodes=1, ranks=8, operation="AllReduce", is_p2p=False, size_from_bytes=64 * MIB,
                algorithm=algorithm, protocol="SIMPLE", busbw_bytes_per_s=busbw * 1e9,
                exec_time_s=0.01)  # fmt: skip


def benchmarked(cluster, nodes, time_s, *, operation="AllReduce", sizes=SIZES, ranks=None):
    """Load a run of nccl-tests, of eight ranks a node unless said; time_s: of a size and ranks."""
    ranks = ranks or 8 * nodes
    cluster.add(
        "nccl_benchmarks", *({"size_bytes": size, "time_s": time_s(size, ranks)} for size in sizes),
        source=f"tests-{nodes}-{operation}", benchmark_id=f"{cluster.name}-{nodes}-{operation}",
        operation=operation, dtype="float", reduction="sum", root=-1, is_in_place=False, repeat=0,
        is_cpu_time=False, ranks=ranks, nodes=[f"n{n}" for n in range(nodes)], gpu_model=H100,
        started_at=0.0)  # fmt: skip


def ring(size, ranks):
    """Return seconds of an AllReduce with 1 us a transfer and 100 GB/s."""
    return 1e-6 * 2 * (ranks - 1) + 2 * (ranks - 1) / ranks * size / 100e9


ALGORITHMS = "from marts.algorithm_bandwidth order by algorithm"
FITS = "from marts.collective_fits"
FITTED = (16, 2, 5, *map(pytest.approx, (30e-6, 100e9, 1_600_000)), pytest.approx(0, abs=1e-6))
test_collectives = shown_by({
    "an operation has the algorithm that rank 0 logged for its size": (
        lambda c: [inspected(c, 100.0, 120.0), inspected(c, 10.0, size=KIB, first=2),
                   logged(c, "RING", "LL128")],
        f"select algorithm, protocol, size_from_bytes, samples, p50_bytes_per_s {ALGORITHMS}",
        [("RING", "LL128", MIB, 2, 110e9)]),
    "two algorithms of one size in a process are not distinguished": (
        lambda c: [inspected(c, 100.0), logged(c, "RING", "LL128"), logged(c, "TREE", "LL128")],
        ALGORITHMS, []),
    "reduction in the switch gains over the best of the others": (
        lambda c: [summary(c, "RING", 300.0, 0), summary(c, "TREE", 200.0, 1),
                   summary(c, "NVLS", 450.0, 2)],
        f"select algorithm, measured_by, offload_gain_ratio {ALGORITHMS}",
        [("NVLS", "means", 0.5), ("RING", "means", None), ("TREE", "means", None)]),
    # 15 transfers of 1 us, twice, and 100 GB/s of bus bandwidth without end
    "latency and bandwidth are fitted to the times of the sizes": (
        lambda c: benchmarked(c, 2, ring),
        f"""select ranks, nodes, sizes, latency_s, limit_bytes_per_s, half_bytes, fit_error_ratio
        {FITS} where tested_from_ranks is null and scaling_error_ratio is null""", [FITTED]),
    "three sizes have no fit": (lambda c: benchmarked(c, 2, ring, sizes=SIZES[:3]), FITS, []),
    "sizes close together have none": (
        lambda c: benchmarked(c, 2, ring, sizes=(4 * MIB, 5 * MIB, 6 * MIB, 7 * MIB)), FITS, []),
    "times that fall with the size have none": (
        lambda c: benchmarked(c, 2, lambda size, _: 1 / size), FITS, []),
    "inside a node more ranks are not forecast": (
        lambda c: benchmarked(c, 1, ring),
        "select distinct ranks, forecast_ranks from marts.collective_forecasts", [(8, 8)]),
    "what is not in a ring is not forecast": (
        lambda c: benchmarked(c, 2, ring, operation="AlltoAll"),
        "select distinct ranks, forecast_ranks from marts.collective_forecasts", [(16, 16)]),
    # of records without a moment it is not known when they ran: they are not in the timeline
    "the rank that came last waited least": (
        lambda c: [
            c.job("1", 0, 60, ["a"], 2),
            *(c.events("1", steps(0, 3, 10), rank=rank, gpu_uuid=c.gpu(f"a#{rank}"),
                       pid=c.first_pid + rank) for rank in range(2)),
            c.all_reduces([3.0, 0.5], [15], message_bytes=MIB, kernel_start_at=15.0),
            c.all_reduces([3.0, 0.5], [25], first=1)],
        "select rank, sequence_number, exec_s, waited_s, size_bytes "
        "from marts.collective_timeline order by rank",
        [(0, 0, 3.0, 2.5, MIB), (1, 0, 0.5, 0.0, MIB)]),
}, before=lambda c: c.node("a", 8))  # fmt: skip


def test_a_forecast_is_tested_on_the_next_number_of_ranks(cluster):
    """32 ranks take a tenth longer than a ring of 16 foretells; 64 are as far, 128 farther."""
    benchmarked(cluster, 2, ring)
    benchmarked(cluster, 4, lambda size, ranks: 1.1 * ring(size, ranks))
    yield
    error = pytest.approx(0.1 / 1.1)
    fit = f"select tested_from_ranks, scaling_error_ratio {FITS} where ranks = 32"
    assert cluster.read(fit).rows() == [(16, error)]
    rows = cluster.read(
        "select forecast_ranks, forecast_s, error_ratio from marts.collective_forecasts"
        f" where ranks = 32 and size_bytes = {MIB // 4} order by forecast_ranks"
    ).rows()
    assert [row[0] for row in rows] == [32, 64, 128]
    assert rows[1][1:] == (pytest.approx(1.1 * ring(MIB // 4, 64)), error)
    assert rows[2][2] is None


def test_published_times_of_144_gpus_are_forecast_from_those_of_72(cluster):
    """AllReduce on GB200 of one rack and of two: reference.bus_bandwidth."""
    known = cluster.read(
        "select ranks, size_bytes, 1 / busbw_bytes_per_s as s from reference.bus_bandwidth"
        " where gpu_kind = 'gb200' and size_bytes >= 512 * 1024 * 1024"
    )
    took = {(ranks, size): 2 * (ranks - 1) / ranks * size * s for ranks, size, s in known.rows()}
    sizes = tuple(size for ranks, size in took if ranks == 72)
    benchmarked(cluster, 18, lambda size, _: took[72, size], sizes=sizes, ranks=72)
    yield
    sql = "select size_bytes, forecast_s from marts.collective_forecasts where forecast_ranks = 144"
    rows = cluster.read(sql).rows()
    both = {size: s / took[144, size] for size, s in rows if (144, size) in took}
    assert both == {size: pytest.approx(1, abs=0.05) for size in (2**30, 2**33)}


def gang(cluster, **measured):
    """Load five steps of 10 s of two ranks, each with its process."""
    cluster.job_on_a_node("1", 0, 50, 2)
    for rank in range(2):
        of_rank = {"rank": rank, "gpu_uuid": cluster.gpu(f"a#{rank}")}
        ran = steps(1, 5, 0, **measured)
        cluster.events("1", ran, pid=cluster.first_pid + rank, **of_rank)


def trace(cluster, rank, kernels, ranks=2):
    """Load a rank's profiler trace: start, duration and exposed seconds of NCCL kernels."""
    cluster.add("profiled_collectives",
                *({"start_at": start, "duration_s": duration, "exposed_s": exposed, "place": place}
                  for place, (start, duration, exposed) in enumerate(kernels)), source="kineto",
                trace_id=f"{cluster.name}-{rank}", rank=rank, ranks_total=ranks,
                pid=cluster.first_pid + rank, device=rank, stream=7,
                kernel="ncclDevKernel_AllReduce", operation="allreduce", group_name="default_pg",
                ranks=ranks)  # fmt: skip


WAITS, COMES_LATER = [(12, 3.0, 2.0)], [(13.5, 1.5, 1.5)]
IN_PART = [(19.5, 0.25, 0.25), *((20 + s, 0.5, 0.5) for s in range(1, 6)), (30.5, 0.25, 0.25)]


# what it shows: kernels by rank, GPU-seconds of 100
@each({
    # of 3 s on rank 0 one overlaps compute; rank 1 comes 1.5 s later and only transfers
    "traces of all ranks split exposed time into waiting and transfer": (
        [WAITS, COMES_LATER],
        {"straggler_wait": 1.5, "exposed_comm": 2.0, "productive": 16.5, "step_unsplit": 80}),
    "a trace of one rank measures no waiting": ([WAITS], {"exposed_comm": 2.0, "step_unsplit": 98}),
    "a step that the trace has in part is left out": (
        [IN_PART, IN_PART], {"exposed_comm": 5.0, "productive": 15.0, "step_unsplit": 80}),
})  # fmt: skip
def test_ledger_of_profiler_traces_that_come_after_the_steps(cluster, kernels, expected):
    gang(cluster)
    yield
    assert cluster.gpu_s() == {"step_unsplit": 100}
    for rank, of_rank in enumerate(kernels):
        trace(cluster, rank, of_rank)
    yield
    assert cluster.gpu_s() == expected


# what it shows: measured communication of a step, GPU-seconds, and what bounds it: time without a
# split, communication at most and its share
@each({
    "durations alone bound communication and leave steps unsplit": (
        {}, {"step_unsplit": 100}, (100_000, 20_000, 0.2)),
    "where exposed time is measured nothing is bounded": (
        {"comm_s": 1.0}, {"exposed_comm": 10, "productive": 90}, (0, None, None)),
})  # fmt: skip
def test_durations_alone_bound_communication_and_split_no_step(cluster, measured, ledger, bounds):
    gang(cluster, **measured)
    cluster.all_reduces([2.0, 2.0], range(5, 55, 10))
    yield
    assert cluster.gpu_s() == ledger
    columns = "unsplit_ms, comm_at_most_ms, comm_at_most_ratio"
    assert cluster.read(f"select {columns} from marts.communication").rows() == [bounds]


def test_the_time_between_measured_steps_is_measured_too(cluster):
    """20 ms between steps of 2 s: the job's own loop, no step without communication measured."""
    cluster.job_on_a_node("1", 0, 202, 2)
    measured = [{**step, "dur_s": 2.0} for step in steps(1, 100, 0, 2.02, comm_s=0.2)]
    for rank in (0, 1):
        cluster.events("1", measured, rank=rank, gpu_uuid=cluster.gpu(f"a#{rank}"))
    yield
    found = cluster.gpu_s()
    assert "step_unsplit" not in found
    assert (found["exposed_comm"], found["productive"]) == (40, 2 * (100 * 1.8 + 99 * 0.02))


@built_in(2)
def test_the_clusters_of_all_marts_balance_and_have_the_rows_of_a_full_build(cluster):
    for _ in range(2):
        yield
        assert cluster.violations() == 0
    assert_equals_full_build(cluster)

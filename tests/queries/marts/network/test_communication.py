"""Communication inside steps, by what the site has: comm_s, profiler traces, NCCL durations."""

import pytest
from tests.queries.conftest import built_together, steps


def gang(cluster, ranks=2, count=5):
    """Load steps of 10 s without a word on communication, each rank with its process."""
    cluster.job_on_a_node("1", 0, 10 * count, ranks)
    for rank in range(ranks):
        of_rank = {"rank": rank, "gpu_uuid": cluster.gpu(f"a#{rank}")}
        cluster.events("1", steps(1, count, 0), pid=cluster.first_pid + rank, **of_rank)


def trace(cluster, rank, kernels, ranks=2):
    """Load a rank's profiler trace: start, duration and exposed seconds of NCCL kernels."""
    cluster.add(
        "profiled_collectives", *(
            {"start_at": start, "duration_s": duration, "exposed_s": exposed, "place": place}
            for place, (start, duration, exposed) in enumerate(kernels)
        ),
        source="kineto", trace_id=f"{cluster.name}-{rank}", rank=rank, ranks_total=ranks,
        pid=cluster.first_pid + rank, device=rank, stream=7, kernel="ncclDevKernel_AllReduce",
        operation="allreduce", group_name="default_pg", ranks=ranks,
    )  # fmt: skip


WAITS, COMES_LATER = [(12, 3.0, 2.0)], [(13.5, 1.5, 1.5)]
IN_PART = [(19.5, 0.25, 0.25), *((20 + s, 0.5, 0.5) for s in range(1, 6)), (30.5, 0.25, 0.25)]
# what it shows: kernels by rank, GPU-seconds of 100
TRACES = {
    # of 3 s on rank 0 one overlaps compute; rank 1 comes 1.5 s later and only transfers
    "traces of all ranks split exposed time into waiting and transfer": (
        [WAITS, COMES_LATER],
        {"straggler_wait": 1.5, "exposed_comm": 2.0, "productive": 16.5, "step_unsplit": 80},
    ),
    "a trace of one rank measures no waiting": (
        [WAITS], {"exposed_comm": 2.0, "step_unsplit": 98},
    ),
    "a step that the trace has in part is left out": (
        [IN_PART, IN_PART], {"exposed_comm": 5.0, "productive": 15.0, "step_unsplit": 80},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kernels", "expected"), TRACES.values(), ids=TRACES)
@built_together
def test_ledger_of_profiler_traces(cluster, kernels, expected):
    gang(cluster)
    for rank, of_rank in enumerate(kernels):
        trace(cluster, rank, of_rank)
    yield
    assert cluster.gpu_s() == expected


@built_together(builds=2)
def test_a_trace_that_comes_after_the_steps_gives_the_same_ledger(cluster):
    gang(cluster)
    yield
    assert cluster.gpu_s() == {"step_unsplit": 100}
    trace(cluster, 0, WAITS)
    trace(cluster, 1, COMES_LATER)
    yield
    assert cluster.gpu_s()["productive"] == 16.5


@built_together
def test_durations_alone_bound_communication_and_leave_steps_unsplit(cluster):
    gang(cluster)
    cluster.all_reduces([2.0, 2.0], range(5, 55, 10))
    yield
    assert cluster.gpu_s() == {"step_unsplit": 100}
    found = cluster.read("select * from marts.communication").row(0, named=True)
    assert (found["unsplit_ms"], found["timed_step_ms"]) == (100_000, 100_000)
    assert found["comm_at_most_ms"] == 20_000
    assert found["comm_at_most_ratio"] == pytest.approx(0.2)


@built_together
def test_where_exposed_time_is_measured_nothing_is_bounded(cluster):
    cluster.job_on_a_node("1", 0, 50, 2)
    for rank in (0, 1):
        cluster.events("1", steps(1, 5, 0, comm_s=1.0), rank=rank, pid=cluster.first_pid + rank)
    cluster.all_reduces([2.0, 2.0], range(5, 55, 10))
    yield
    assert cluster.gpu_s() == {"exposed_comm": 10, "productive": 90}
    found = cluster.read("select * from marts.communication").row(0, named=True)
    assert (found["unsplit_ms"], found["comm_at_most_ms"]) == (0, None)


@built_together
def test_the_time_between_measured_steps_is_measured_too(cluster):
    """20 ms between steps of 2 s: the job's own loop, no step without communication measured."""
    cluster.job_on_a_node("1", 0, 202, 2)
    for rank in (0, 1):
        steps = [
            {"event": "step", "step": k, "t": 2.02 * k, "dur_s": 2.0, "comm_s": 0.2}
            for k in range(1, 101)
        ]
        cluster.events("1", steps, rank=rank, gpu_uuid=f"{cluster.name}/a#{rank}")
    yield
    found = cluster.gpu_s()

    assert "step_unsplit" not in found
    assert found["exposed_comm"] == 40
    assert found["productive"] == 2 * (100 * 1.8 + 99 * 0.02)

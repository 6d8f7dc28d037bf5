"""Communication inside steps, by what the site has: comm_s, profiler traces, NCCL durations."""

import pytest
from tests.queries.conftest import built_together, steps
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build


def gang(cluster, **measured):
    """Load five steps of 10 s of two ranks, each with its process."""
    cluster.job_on_a_node("1", 0, 50, 2)
    for rank in range(2):
        of_rank = {"rank": rank, "gpu_uuid": cluster.gpu(f"a#{rank}")}
        ran = steps(1, 5, 0, **measured)
        cluster.events("1", ran, pid=cluster.first_pid + rank, **of_rank)


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
@built_together(builds=2)
def test_ledger_of_profiler_traces_that_come_after_the_steps(cluster, kernels, expected):
    gang(cluster)
    yield
    assert cluster.gpu_s() == {"step_unsplit": 100}
    for rank, of_rank in enumerate(kernels):
        trace(cluster, rank, of_rank)
    yield
    assert cluster.gpu_s() == expected


# what it shows: measured communication of a step, GPU-seconds, and what bounds it: time without a
# split, timed steps, communication at most and its share
BOUNDED = {
    "durations alone bound communication and leave steps unsplit": (
        {}, {"step_unsplit": 100}, (100_000, 100_000, 20_000, 0.2),
    ),
    "where exposed time is measured nothing is bounded": (
        {"comm_s": 1.0}, {"exposed_comm": 10, "productive": 90}, (0, 0, None, None),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("measured", "ledger", "bounds"), BOUNDED.values(), ids=BOUNDED)
@built_together
def test_durations_alone_bound_communication_and_leave_steps_unsplit(
    cluster, measured, ledger, bounds
):
    gang(cluster, **measured)
    cluster.all_reduces([2.0, 2.0], range(5, 55, 10))
    yield
    assert cluster.gpu_s() == ledger
    columns = "unsplit_ms, timed_step_ms, comm_at_most_ms, comm_at_most_ratio"
    assert cluster.read(f"select {columns} from marts.communication").rows() == [bounds]


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


@built_together(builds=2)
def test_the_clusters_of_all_marts_have_the_rows_of_a_full_build(cluster):
    yield
    yield
    assert_equals_full_build(cluster)

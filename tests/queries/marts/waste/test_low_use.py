"""Allocations that use little of their GPUs, and what would have been enough."""

import pytest
from tests.queries.anomalies.gpus import BUSY, IDLE, Gpus
from tests.queries.conftest import built_together, steps

HOUR = 3_600
LOW = {
    **BUSY, "sm_active_ratio": 0.06, "tensor_active_ratio": 0.01, "dram_active_ratio": 0.04,
    "engine_active_ratio": 0.3, "power_w": 120.0, "memory_used_bytes": 9 * 10**9,
}  # fmt: skip


def world(gpus, values, *, end=HOUR):
    """Load a job that holds a node whose GPUs have these readings."""
    gpus.node("a", len(values))
    gpus.evidence.job("1", 0, end, ["a"], len(values))
    for number, of_gpu in enumerate(values):
        gpus.read(f"a/{number}", end, of_gpu)


NO_PROFILING = dict.fromkeys(
    ("sm_active_ratio", "engine_active_ratio", "tensor_active_ratio", "dram_active_ratio")
)
# readings of each GPU of a job of an hour, columns and rows of what is found
USES = [
    pytest.param(
        [BUSY, BUSY, IDLE, IDLE], "gpus, unused_gpus, needed_gpus, gpu_ms",
        [("unused_gpus", 4, 2, 2, 2 * HOUR * 1000)],
        id="GPUs that were never active beside busy ones",
    ),
    pytest.param(
        [LOW] * 4, "needed_gpus, mig_profile, gpu_ms", [("low_use", 1, None, 3 * HOUR * 1000)],
        id="fewer GPUs have room for the load of many",
    ),
    pytest.param(
        [{**LOW, **NO_PROFILING, "gpu_busy_ratio": 0.1}],
        "use_metric, confidence, tensor_active_ratio",
        [("low_use", "GPU utilisation", "Likely", None)],
        id="by utilisation without profiling counters",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("values", "columns", "expected"), USES)
@built_together
def test_what_low_use_is_found(cluster, values, columns, expected):
    gpus = Gpus(cluster)
    world(gpus, values)
    yield
    assert gpus.rows("low_use", f"rule, {columns}") == expected


@built_together
def test_a_profile_of_one_slice_gives_the_other_slices_back(cluster):
    gpus = Gpus(cluster)
    world(gpus, [LOW])
    yield
    ((gpu_ms,),) = gpus.rows("low_use", "gpu_ms")
    assert gpu_ms == pytest.approx(HOUR * 1000 * 6 / 7, abs=2)


@built_together
def test_start_up_is_left_out(cluster):
    """Half an hour of idle start-up, then half an hour of work."""
    gpus = Gpus(cluster)
    world(gpus, [lambda second: IDLE if second < 1740 else BUSY])
    cluster.events("1", [{"event": "job.start", "t": 1}, *steps(1, 29, 1800, 60)])
    yield
    assert gpus.rows("low_use") == []

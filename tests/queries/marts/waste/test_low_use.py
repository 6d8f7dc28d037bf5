"""Allocations that use little of their GPUs, and what would have been enough."""

import pytest
from tests.queries.conftest import built_together
from tests.queries.findings import given

HOUR = 3_600
LOW = {
    "sm_active_ratio": 0.06, "tensor_active_ratio": 0.01, "dram_active_ratio": 0.04,
    "engine_active_ratio": 0.3, "power_w": 120.0, "memory_used_bytes": 9 * 10**9,
}  # fmt: skip
NO_PROFILING = dict.fromkeys(name for name in LOW if name.endswith("active_ratio"))


def found(cluster, columns):
    return cluster.read(f"select rule, {columns} from marts.low_use").rows()


# what it shows: readings of the GPUs of a job of an hour, columns and rows of what is found
USES = {
    "fewer GPUs have room for the load of many": (
        [{"readings": "a/0-3", **LOW}], "needed_gpus, mig_profile, gpu_ms",
        [("low_use", 1, None, 3 * HOUR * 1000)],
    ),
    "by utilisation without profiling counters": (
        [{"readings": "a/0-3", **LOW, **NO_PROFILING, "gpu_busy_ratio": 0.1}],
        "use_metric, confidence, tensor_active_ratio",
        [("low_use", "GPU utilisation", "Likely", None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("readings", "columns", "expected"), USES.values(), ids=USES)
@built_together
def test_what_low_use_is_found(cluster, readings, columns, expected):
    given.load(cluster, [{"node": "a", "gpus": 4}, {"job": "1", "end": HOUR}, *readings])
    yield
    assert found(cluster, columns) == expected


@built_together
def test_a_profile_of_one_slice_gives_the_other_slices_back(cluster):
    readings = {"readings": "a/0", **LOW}
    given.load(cluster, [{"node": "a", "gpus": 1}, {"job": "1", "end": HOUR}, readings])
    yield
    ((_, gpu_ms),) = found(cluster, "gpu_ms")
    assert gpu_ms == pytest.approx(HOUR * 1000 * 6 / 7, abs=2)

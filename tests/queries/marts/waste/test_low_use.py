"""Allocations that use little of their GPUs, or have a program there that does nothing."""

import pytest
from tests.queries.conftest import built_together, phase, steps
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


LOADED, EMPTY = 8 << 30, 1 << 29  # bytes in use


def readings(cluster, seconds, works, memory=LOADED):
    """Add a GPU that is read each second and works in these spans."""
    cluster.telemetry("n", 1)
    rows = [
        {
            "ts": second,
            "gpu_busy_ratio": 0.9 if any(a <= second < b for a, b in works) else 0.0,
            "memory_used_bytes": memory,
        }
        for second in seconds
    ]
    of_gpu = {"gpu_uuid": cluster.gpu("n-0"), "gpu_instance": "", "is_flagged": False}
    cluster.add("gpu_samples", *[{**of_gpu, **row} for row in rows], source="nvml")


# what it shows: when the GPU works in a hold of 1200 s, memory in use, seconds of executing idle
WORK = {
    "a pause of 20 s, from its first second": ([(1, 400), (420, 1201)], LOADED, 20),
    "without a program there is nothing that could run": ([(1, 400), (420, 1201)], EMPTY, 0),
    "before the first activity a program starts": ([(300, 1201)], LOADED, 0),
    "one that never works is starting for ten minutes": ([], LOADED, 600),
}


@pytest.mark.parametrize(("works", "memory", "idle_s"), WORK.values(), ids=WORK)
@built_together
def test_a_hold_without_job_events(cluster, works, memory, idle_s):
    cluster.job("7", 0, 1200, ["n"], 1)
    readings(cluster, range(1, 1201), works, memory)
    yield
    (run,) = cluster.read("select * from marts.executing_idle").rows(named=True)
    (team,) = cluster.read("select * from marts.executing_idle_by_team").rows(named=True)
    assert {name: run[name] for name in team} == team
    assert (run["idle_ms"] / 1000, run["held_ms"] / 1000) == (idle_s, pytest.approx(1200, abs=1))
    assert run["idle_ratio"] == pytest.approx(idle_s / 1200, abs=0.001)


@built_together
def test_declared_phases_are_left_out(cluster):
    """Of a pause of 60 s the job restores for 40."""
    cluster.job("7", 0, 1200, ["n"], 1)
    cluster.events("7", [*steps(1, 40, 0), phase("restore", 410, 450), *steps(41, 114, 460)])
    readings(cluster, range(1, 1201), [(1, 400), (460, 1201)])
    yield
    assert cluster.read("select idle_ms from marts.executing_idle").item() == 20_000

"""Allocations that use little of their GPUs, and what would have been enough."""

import pytest
from tests.queries.anomalies.conftest import BUSY, IDLE, Gpus
from tests.queries.conftest import built_together

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


@pytest.mark.fires("low_use")
@built_together
def test_low_use_of_one_gpu_is_found_with_the_profile_that_has_room(cluster):
    gpus = Gpus(cluster)
    world(gpus, [LOW])
    yield
    (row,) = gpus.found("low_use")

    assert (row["rule"], row["gpu_uuid"], row["gpus"], row["unused_gpus"]) == (
        "low_use", "a/0", 1, 0,
    )  # fmt: skip
    assert row["use_ratio"] == pytest.approx(0.06)
    assert row["mig_profile"] == "1g with double memory"  # 9 GB are more than 80 % of 10 GB
    assert row["gpu_ms"] == pytest.approx(HOUR * 1000 * 6 / 7, abs=2)
    assert row["confidence"] == "Confirmed"


@pytest.mark.quiet("low_use", "unused_gpus")
@built_together
def test_a_busy_allocation_is_no_finding(cluster):
    gpus = Gpus(cluster)
    world(gpus, [BUSY, BUSY])
    yield
    assert gpus.found("low_use") == []


@built_together
def test_a_memory_bound_load_is_used(cluster):
    """Inference reads memory all the time at a low SM activity."""
    gpus = Gpus(cluster)
    world(gpus, [{**LOW, "dram_active_ratio": 0.6}])
    yield
    assert gpus.found("low_use") == []


@pytest.mark.fires("unused_gpus")
@built_together
def test_gpus_that_were_never_active_are_counted_beside_busy_ones(cluster):
    gpus = Gpus(cluster)
    world(gpus, [BUSY, BUSY, IDLE, IDLE])
    yield
    (row,) = gpus.found("low_use")

    assert (row["rule"], row["gpus"], row["unused_gpus"], row["needed_gpus"]) == (
        "unused_gpus", 4, 2, 2,
    )  # fmt: skip
    assert row["gpu_ms"] == 2 * HOUR * 1000


@built_together
def test_fewer_gpus_have_room_for_a_low_load_of_many(cluster):
    gpus = Gpus(cluster)
    world(gpus, [LOW] * 4)
    yield
    (row,) = gpus.found("low_use")

    assert (row["rule"], row["needed_gpus"], row["mig_profile"]) == ("low_use", 1, None)
    assert row["gpu_ms"] == 3 * HOUR * 1000


@built_together
def test_start_up_is_left_out(cluster):
    """Half an hour of idle start-up, then half an hour of work."""
    gpus = Gpus(cluster)
    gpus.node("a", 1)
    gpus.evidence.job("1", 0, HOUR, ["a"], 1)
    events = [{"event": "job.start", "t": 1}]
    events += [{"event": "step", "step": k, "t": 1800 + 60 * k, "dur_s": 60} for k in range(1, 30)]
    gpus.evidence.events("1", events)
    gpus.read("a/0", HOUR, lambda second: IDLE if second < 1740 else BUSY)
    yield
    assert gpus.found("low_use") == []


@built_together
def test_less_than_half_an_hour_is_not_judged(cluster):
    gpus = Gpus(cluster)
    world(gpus, [LOW], end=1_800)
    yield
    assert gpus.found("low_use") == []


@built_together
def test_without_profiling_counters_it_rests_on_utilisation_and_is_likely(cluster):
    gpus = Gpus(cluster)
    none = dict.fromkeys(("sm_active_ratio", "engine_active_ratio", "tensor_active_ratio",
                          "dram_active_ratio"))  # fmt: skip
    world(gpus, [{**LOW, **none, "gpu_busy_ratio": 0.1}])
    yield
    (row,) = gpus.found("low_use", "use_metric, confidence, tensor_active_ratio")

    assert row == {
        "use_metric": "GPU utilisation", "confidence": "Likely", "tensor_active_ratio": None
    }  # fmt: skip

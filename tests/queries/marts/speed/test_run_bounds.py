"""What runs are bound by, and GPUs whose memory grows until it is full."""

import math

import pytest
from tests.queries.conftest import built_together, steps

HOUR_S = 3600
MEMORY = 80 * 2**30


def readings(cluster, gpu, until, every=60, **values):
    """Load readings of a GPU; a value may be a function of the second."""
    rows = [
        {
            "ts": t,
            **{name: value(t) if callable(value) else value for name, value in values.items()},
        }
        for t in range(0, until, every)
    ]
    of_gpu = {"gpu_uuid": cluster.gpu(gpu), "gpu_instance": "", "is_flagged": False}
    cluster.add("gpu_samples", *rows, **of_gpu)


def run(cluster, of_a_step=None, **values):
    """Load a run of an hour on two GPUs, of which one reads `values`."""
    cluster.node("a", 2, model="NVIDIA H100 80GB HBM3")
    cluster.job("1", 0, HOUR_S, ["a"], 2)
    for rank in (0, 1):
        events = steps(1, 360, 0, 10.0, **(of_a_step or {}))
        cluster.events("1", events, rank=rank, gpu_uuid=f"{cluster.name}/a#{rank}")
    readings(cluster, "a#0", HOUR_S, **values)


def bound(cluster):
    """Return the row of the run."""
    return cluster.read("select * from marts.run_bounds").row(0, named=True)


@pytest.mark.parametrize(
    ("of_a_step", "values", "expected"),
    [
        ({"data_s": 3.0}, {"tensor_active_ratio": 0.6}, "input"),
        ({"comm_s": 4.0}, {"tensor_active_ratio": 0.55}, "communication"),
        ({}, {"tensor_active_ratio": 0.6, "dram_active_ratio": 0.4}, "compute"),
        ({}, {"fp64_active_ratio": 0.7, "fp32_active_ratio": 0.1}, "compute"),
        ({}, {"tensor_active_ratio": 0.2, "dram_active_ratio": 0.7}, "memory bandwidth"),
        ({}, {"sm_active_ratio": 0.3, "dram_active_ratio": 0.2}, "outside the GPU"),
        ({}, {"tensor_active_ratio": 0.43, "dram_active_ratio": 0.45}, "compute"),
        ({}, {"tensor_active_ratio": 0.1, "dram_active_ratio": 0.2}, "unknown"),
        ({}, {"tensor_active_ratio": 0.3, "clocks_event_reasons": 32}, "power or heat"),
        ({}, {"tensor_active_ratio": 0.2, "clocks_event_reasons": 4}, "unknown"),
        ({}, {"power_w": 300.0}, "unknown"),
    ],
)  # fmt: skip
@built_together
def test_a_run_is_bound_by(cluster, of_a_step, values, expected):
    run(cluster, of_a_step, **values)
    yield
    assert bound(cluster)["bound_by"] == expected


@built_together
def test_the_sentence_has_the_number_or_what_is_missing(cluster):
    run(cluster, power_w=300.0)
    yield
    found = bound(cluster)

    assert found["sm_active_ratio"] is None
    assert found["sentence"] == (
        "Neither profiling metrics of its GPUs nor its communication are measured."
    )


@built_together
def test_gpus_that_wait_for_busy_processors_are_bound_by_the_host(cluster):
    cluster.add(
        "node_samples", *(
            {"ts": t, "cpu_busy_s": 9.0 * t, "cpu_total_s": 10.0 * t}
            for t in range(0, HOUR_S + 1, 60)
        ),
        node="a",
    )  # fmt: skip

    run(cluster, sm_active_ratio=0.25)
    yield
    found = bound(cluster)

    assert found["bound_by"] == "host"
    assert found["cpu_busy_ratio"] == pytest.approx(0.9)
    assert found["sentence"] == "SMs are active 25 % of the time, and processors 90 %."


def job_that_uses(cluster, used, hours=8):
    """Load a running job of one GPU whose used memory is `used(second)`."""
    cluster.add(
        "gpus", node="a", gpu_uuid="a#0", slurm_index=0, gpu_index=0, gpu_model="h100",
        memory_bytes=MEMORY, valid_from_at=0,
    )  # fmt: skip
    cluster.job("1", 0, int(hours * HOUR_S), ["a"], 1)
    readings(
        cluster, "a#0", int(hours * HOUR_S), every=300, memory_used_bytes=lambda t: int(used(t))
    )  # fmt: skip


def growth(cluster):
    """Return the rows of the job."""
    return cluster.read("select * from marts.memory_growth").rows(named=True)


@pytest.mark.parametrize(
    "used",
    [
        lambda t: (40 + 2 * math.sin(t)) * 2**30,
        lambda t: (40 + 20 * min(1, t / (3 * HOUR_S))) * 2**30,
        lambda t: (40 + 20 * (t % (2 * HOUR_S)) / HOUR_S) * 2**30,
    ],
    ids=["varies", "levels off", "rises and falls"],
)
@built_together
def test_other_memory_is_not_listed(cluster, used):
    job_that_uses(cluster, used)
    yield
    assert growth(cluster) == []


def in_an_hour(*used_gib):
    """Return the memory at a second of an hour, linear between ten-minute marks from 20 on."""

    def used(t):
        at = max(0.0, (t - 1200) / 600)
        first = min(int(at), len(used_gib) - 2)
        part = min(1.0, at - first)
        return (used_gib[first] + part * (used_gib[first + 1] - used_gib[first])) * 2**30

    return used


@pytest.mark.parametrize(
    ("used", "is_listed"),
    [
        pytest.param(in_an_hour(40, 42, 44, 46, 48), True, id="12 GiB an hour"),
        pytest.param(in_an_hour(40, 40.2, 40.4, 40.6, 40.8), False, id="1 % in 40 minutes"),
        pytest.param(in_an_hour(40, 44, 46, 46, 46), False, id="caches fill, then level off"),
        pytest.param(in_an_hour(40, 40, 40, 46, 46), False, id="one allocation"),
    ],
)
@built_together
def test_a_short_attempt_has_to_grow_more_and_all_the_time(cluster, used, is_listed):
    job_that_uses(cluster, used, hours=1)
    yield
    assert [row["windows"] for row in growth(cluster)] == ([4] if is_listed else [])


@built_together
def test_half_an_hour_is_too_short_to_call_it_growth(cluster):
    job_that_uses(cluster, lambda t: (40 + 10 * t / HOUR_S) * 2**30, hours=0.5)
    yield
    assert growth(cluster) == []

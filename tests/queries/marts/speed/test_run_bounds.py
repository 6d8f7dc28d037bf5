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


SENTENCE = "Neither profiling metrics of its GPUs nor its communication are measured."
BUSY_HOST = "SMs are active 25 % of the time, and processors 90 %."
# what of a step is not computing, what one of two GPUs reads, share of busy processors; what the
# run is bound by, and its sentence where it is shown
BOUNDS = [
    ({"data_s": 3.0}, {"tensor_active_ratio": 0.6}, None, "input", None),
    ({"comm_s": 4.0}, {"tensor_active_ratio": 0.55}, None, "communication", None),
    ({}, {"tensor_active_ratio": 0.6, "dram_active_ratio": 0.4}, None, "compute", None),
    ({}, {"fp64_active_ratio": 0.7, "fp32_active_ratio": 0.1}, None, "compute", None),
    ({}, {"tensor_active_ratio": 0.2, "dram_active_ratio": 0.7}, None, "memory bandwidth", None),
    ({}, {"sm_active_ratio": 0.3, "dram_active_ratio": 0.2}, None, "outside the GPU", None),
    ({}, {"tensor_active_ratio": 0.43, "dram_active_ratio": 0.45}, None, "compute", None),
    ({}, {"tensor_active_ratio": 0.1, "dram_active_ratio": 0.2}, None, "unknown", None),
    ({}, {"tensor_active_ratio": 0.3, "clocks_event_reasons": 32}, None, "power or heat", None),
    ({}, {"tensor_active_ratio": 0.2, "clocks_event_reasons": 4}, None, "unknown", None),
    ({}, {"power_w": 300.0}, None, "unknown", SENTENCE),
    ({}, {"sm_active_ratio": 0.25}, 0.9, "host", BUSY_HOST),
]


@pytest.mark.parametrize(("of_a_step", "values", "processors", "expected", "sentence"), BOUNDS)
@built_together
def test_a_run_is_bound_by(cluster, of_a_step, values, processors, expected, sentence):
    run(cluster, of_a_step, **values)
    if processors:
        seconds = range(0, HOUR_S + 1, 60)
        busy = [{"ts": t, "cpu_busy_s": processors * t, "cpu_total_s": t} for t in seconds]
        cluster.add("node_samples", *busy, node="a")
    yield
    found = cluster.read("from marts.run_bounds").row(0, named=True)
    assert (found["bound_by"], found["cpu_busy_ratio"]) == (expected, pytest.approx(processors))
    assert sentence in (None, found["sentence"])


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


def in_an_hour(*used_gib):
    """Return the memory at a second of an hour, linear between ten-minute marks from 20 on."""

    def used(t):
        at = max(0.0, (t - 1200) / 600)
        first = min(int(at), len(used_gib) - 2)
        part = min(1.0, at - first)
        return used_gib[first] + part * (used_gib[first + 1] - used_gib[first])

    return used


# what it shows: GiB at a second, hours of the job, in how many windows it grew, if it is listed
MEMORIES = {
    "memory that varies": (lambda t: 40 + 2 * math.sin(t), 8, None),
    "memory that levels off": (lambda t: 40 + 20 * min(1, t / (3 * HOUR_S)), 8, None),
    "memory that rises and falls": (lambda t: 40 + 20 * (t % (2 * HOUR_S)) / HOUR_S, 8, None),
    # a short attempt has to grow more and all the time
    "12 GiB an hour": (in_an_hour(40, 42, 44, 46, 48), 1, 4),
    "1 % in 40 minutes": (in_an_hour(40, 40.2, 40.4, 40.6, 40.8), 1, None),
    "caches fill, then level off": (in_an_hour(40, 44, 46, 46, 46), 1, None),
    "one allocation": (in_an_hour(40, 40, 40, 46, 46), 1, None),
    "half an hour is too short": (lambda t: 40 + 10 * t / HOUR_S, 0.5, None),
}


@pytest.mark.parametrize(("used", "hours", "windows"), MEMORIES.values(), ids=MEMORIES)
@built_together
def test_memory_that_grows(cluster, used, hours, windows):
    job_that_uses(cluster, lambda t: used(t) * 2**30, hours)
    yield
    found = cluster.read("select windows from marts.memory_growth").rows()
    assert found == ([(windows,)] if windows else [])

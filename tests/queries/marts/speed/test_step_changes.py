"""Changes of step time, what runs are bound by, and GPUs whose memory grows until it is full."""

import math
import random

import numpy as np
import pytest
from tests.queries.conftest import each, shown_by, steps

STEPS, BASE_S = 1500, 0.5


def noise(seed, steps=STEPS):
    """Return 1 % noise whose values depend on the ones before, and a few steps that take longer."""
    chance = random.Random(seed)  # noqa: S311 -- noise, no secret
    memory = (0.5, 0.8, 0.95)[seed % 3]
    value, found = chance.gauss(0, 1), []
    for _ in range(steps):
        value = memory * value + (1 - memory**2) ** 0.5 * chance.gauss(0, 1)
        found.append((1 + 0.01 * value) * (3 if chance.random() < 0.01 else 1))
    return found


def run(evidence, name, factors, *, gap=None, data_s=None, more=None, until=None, attempt=0):
    """Load a run on a node of its own; factors: of BASE_S; return when its last step ended.

    gap: seconds that pass before a step outside of all steps; data_s: of it inside the step
    """
    at, events = until or 0.0, []
    for number, factor in enumerate(factors, 1):
        length = BASE_S * factor + (data_s or {}).get(number, 0)
        at += length + (gap or {}).get(number, 0)
        event = {"event": "step", "step": number, "t": round(at, 3), "dur_s": round(length, 6)}
        if data_s is not None:
            event["data_s"] = data_s.get(number, 0.0)
        events.append(event | (more(number) if more else {}))
    evidence.events(name, events, attempt=attempt, host=name)
    return at


def place(evidence, name, end, gpus=2):
    evidence.node(name, gpus)
    evidence.job(name, 0, end, [name], gpus)


def changes(cluster):
    rows = cluster.read("select * from marts.step_changes order by run_key, since_ms")
    return rows.rows(named=True)


def test_of_24_series_changes_of_5_to_10_percent_are_found_and_nothing_else(cluster):
    chance = random.Random(7)  # noqa: S311 -- noise, no secret
    expected = {}
    for seed in range(24):
        factors, name = noise(seed), f"n{seed:02}"
        if seed % 2:
            begin = int(STEPS * chance.uniform(0.3, 0.6))
            end = STEPS if seed % 4 == 1 else begin + int(STEPS * chance.uniform(0.15, 0.3))
            size = chance.uniform(1.05, 1.1)
            factors = [f * size if begin <= k < end else f for k, f in enumerate(factors)]
            first = pytest.approx(begin + 1, abs=0.03 * STEPS)
            ratio = pytest.approx(size, abs=0.02)
            expected[f"{cluster.name}/{name}"] = (first, end == STEPS, ratio)
        place(cluster, name, run(cluster, name, factors) + 1)
    yield
    found = changes(cluster)
    right = [
        row
        for row in found
        if (row["first_step"], row["until_at"] is None, row["ratio"])
        == expected.get(row["run_key"])
    ]
    assert len(right) / len(found) >= 0.95, "precision"
    assert len({row["run_key"] for row in right}) / len(expected) >= 0.9, "recall"


SAVES = dict.fromkeys(range(100, STEPS, 100), 20.0)
STALLS = dict.fromkeys(range(700, 900), 0.4)


# what it shows: the lives of a run (factors, more), columns of its only episode, if it has one
@each({
    "steps that become slower twice are one episode": (
        [([1.0 if k < 500 else 1.2 if k < 1000 else 1.5 for k in range(STEPS)], {})],
        {"before_ms": pytest.approx(500), "until_at": None,
         "lost_gpu_ms": pytest.approx(2 * 500 * (100 + 250), rel=0.05)}),
    # the second life begins again at step 1, on the same node
    "checkpoints, data stalls and restarts are no change": (
        [(noise(3), {"gap": SAVES, "data_s": STALLS}), (noise(4), {})], None),
    # twice the samples in 1.4 times the time is faster: throughput is compared
    "a larger batch is no slower step": (
        [([1.0 if k <= 700 else 1.4 for k in range(1, STEPS + 1)],
          {"more": lambda step: {"samples": 16.0 if step <= 700 else 32.0}})],
        {"ratio": pytest.approx(0.7, abs=0.01), "lost_gpu_ms": 0}),
    "an attempt of few steps has no changes": ([([1.0] * 60 + [2.0] * 60, {})], None),
})  # fmt: skip
def test_changes_of_a_run(cluster, lives, expected):
    end = -60
    for attempt, (factors, more) in enumerate(lives):
        end = run(cluster, "a", factors, until=end + 60, attempt=attempt, **more)
    place(cluster, "a", end + 1)
    yield
    found = [{name: row[name] for name in expected or row} for row in changes(cluster)]
    assert found == ([expected] if expected else [])


HOUR_S = 3600


def readings(cluster, gpu, until, every=60, **values):
    cluster.readings(cluster.gpu(gpu), range(0, until, every), **values)


def gang(cluster, of_a_step=None, **values):
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
@each(
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
)  # fmt: skip
def test_a_run_is_bound_by(cluster, of_a_step, values, processors, expected, sentence):
    gang(cluster, of_a_step, **values)
    if processors:
        seconds = range(0, HOUR_S + 1, 60)
        cluster.host("a", seconds, cpu_busy_s=lambda s: processors * s, cpu_total_s=lambda s: s)
    yield
    found = cluster.read("from marts.run_bounds").row(0, named=True)
    assert (found["bound_by"], found["cpu_busy_ratio"]) == (expected, pytest.approx(processors))
    assert sentence in (None, found["sentence"])


def in_an_hour(*used_gib):
    """Return the memory at a second of an hour, linear between ten-minute marks from 20 on."""
    marks = range(1200, 1200 + 600 * len(used_gib), 600)
    return lambda t: float(np.interp(t, marks, used_gib))


# what it shows: GiB at a second, seconds of the job, in how many windows it grew, if it is listed
test_memory_that_grows = shown_by({
    "memory that varies": (lambda t: 40 + 2 * math.sin(t), 8 * HOUR_S, []),
    "memory that levels off": (lambda t: 40 + 20 * min(1, t / (3 * HOUR_S)), 8 * HOUR_S, []),
    "memory that rises and falls": (
        lambda t: 40 + 20 * (t % (2 * HOUR_S)) / HOUR_S, 8 * HOUR_S, []),
    # a short attempt has to grow more and all the time
    "12 GiB an hour": (in_an_hour(40, 42, 44, 46, 48), HOUR_S, [(4, None)]),
    "1 % in 40 minutes": (in_an_hour(40, 40.2, 40.4, 40.6, 40.8), HOUR_S, []),
    "caches fill, then level off": (in_an_hour(40, 44, 46, 46, 46), HOUR_S, []),
    "one allocation": (in_an_hour(40, 40, 40, 46, 46), HOUR_S, []),
    "half an hour is too short": (lambda t: 40 + 10 * t / HOUR_S, HOUR_S // 2, []),
}, before=lambda c: c.listed("a", "a#0", "test", slurm_index=0),  # of a size not known
    load=lambda c, used, end: [c.job("1", 0, end, ["a"], 1), readings(
        c, "a#0", end, every=300, memory_used_bytes=lambda t: int(used(t) * 2**30))],
    read="select windows, time_to_full_s from marts.memory_growth")  # fmt: skip

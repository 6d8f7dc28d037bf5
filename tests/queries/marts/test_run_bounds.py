"""What runs are bound by, and GPUs whose memory grows until it is full."""

from __future__ import annotations

import math
import random

import pytest

HOUR_S = 3600
MEMORY = 80 * 2**30


def readings(evidence, gpu, until, every=60, **values):
    """Load readings of a GPU; a value may be a function of the second."""
    evidence.load(
        "gpu_samples",
        [
            {
                "gpu_uuid": f"c/{gpu}", "gpu_instance": "", "ts": evidence.at(t),
                "is_flagged": False,
                **{name: value(t) if callable(value) else value for name, value in values.items()},
            }
            for t in range(0, until, every)
        ],
    )  # fmt: skip


def bound(evidence, job_events, of_a_step=None, **values):
    """Return the row of a run of an hour on two GPUs, of which one reads `values`."""
    evidence.node("a", 2, model="NVIDIA H100 80GB HBM3")
    evidence.job("1", 0, HOUR_S, ["a"], 2)
    for rank in (0, 1):
        events = job_events.steps(1, 360, 0, 10.0, **(of_a_step or {}))
        evidence.events("1", events, rank=rank, gpu_uuid=f"c/a#{rank}")
    readings(evidence, "a#0", HOUR_S, **values)
    evidence.store.build()
    return evidence.store.read("select * from marts.run_bounds").row(0, named=True)


@pytest.mark.parametrize(
    ("of_a_step", "values", "expected"),
    [
        ({"data_s": 3.0}, {"tensor_active_ratio": 0.6}, "input"),
        ({"comm_s": 4.0}, {"tensor_active_ratio": 0.55}, "communication"),
        ({}, {"tensor_active_ratio": 0.6, "dram_active_ratio": 0.4}, "compute"),
        ({}, {"fp64_active_ratio": 0.7, "fp32_active_ratio": 0.1}, "compute"),
        ({}, {"tensor_active_ratio": 0.2, "dram_active_ratio": 0.7}, "memory bandwidth"),
        ({}, {"sm_active_ratio": 0.3, "dram_active_ratio": 0.2}, "unknown"),
        ({}, {"tensor_active_ratio": 0.3, "clocks_event_reasons": 32}, "power or heat"),
        ({}, {"tensor_active_ratio": 0.3, "clocks_event_reasons": 4}, "unknown"),
        ({}, {"power_w": 300.0}, "unknown"),
    ],
)  # fmt: skip
def test_a_run_is_bound_by(evidence, job_events, of_a_step, values, expected):
    assert bound(evidence, job_events, of_a_step, **values)["bound_by"] == expected


def test_the_sentence_has_the_number_or_what_is_missing(evidence, job_events):
    found = bound(evidence, job_events, power_w=300.0)

    assert found["sm_active_ratio"] is None
    assert found["sentence"] == (
        "Neither profiling metrics of its GPUs nor its communication are measured."
    )


def test_gpus_that_wait_for_busy_processors_are_bound_by_the_host(evidence, job_events):
    evidence.load(
        "node_samples",
        [
            {
                "cluster": "c", "node": "a", "ts": evidence.at(t),
                "cpu_busy_s": 9.0 * t, "cpu_total_s": 10.0 * t,
            }
            for t in range(0, HOUR_S + 1, 60)
        ],
    )  # fmt: skip

    found = bound(evidence, job_events, sm_active_ratio=0.25)

    assert found["bound_by"] == "host"
    assert found["cpu_busy_ratio"] == pytest.approx(0.9)
    assert found["sentence"] == "SMs are active 25 % of the time, and processors 90 %."


def growth(evidence, used, hours=8):
    """Return the rows of a running job of one GPU whose used memory is `used(second)`."""
    evidence.load(
        "gpus",
        [{"cluster": "c", "node": "a", "gpu_uuid": "a#0", "slurm_index": 0, "gpu_index": 0,
          "gpu_model": "h100", "memory_bytes": MEMORY, "valid_from_at": evidence.at(0)}],
    )  # fmt: skip
    evidence.job("1", 0, hours * HOUR_S, ["a"], 1)
    readings(
        evidence, "a#0", hours * HOUR_S, every=300, memory_used_bytes=lambda t: int(used(t))
    )  # fmt: skip
    evidence.store.build()
    return evidence.store.read("select * from marts.memory_growth").rows(named=True)


def test_memory_that_leaks_is_listed_with_the_time_until_it_is_full(evidence):
    """2 GiB an hour with some noise: from 40 GiB to 56 of 80 in eight hours."""
    chance = random.Random(1)  # noqa: S311 -- noise, no secret

    (found,) = growth(evidence, lambda t: (40 + 2 * t / HOUR_S + chance.uniform(-0.1, 0.1)) * 2**30)

    assert found["growth_bytes_per_h"] == pytest.approx(2 * 2**30, rel=0.05)
    assert found["time_to_full_s"] == pytest.approx(12 * HOUR_S, rel=0.1)
    assert found["memory_bytes"] == MEMORY


@pytest.mark.parametrize(
    "used",
    [
        lambda t: 0 * t + 40 * 2**30,
        lambda t: (40 + 2 * math.sin(t)) * 2**30,
        lambda t: (40 + 20 * min(1, t / (3 * HOUR_S))) * 2**30,
        lambda t: (40 + 20 * (t % (2 * HOUR_S)) / HOUR_S) * 2**30,
        lambda t: 40 * 2**30 + 10_000 * t,
    ],
    ids=["constant", "varies", "levels off", "rises and falls", "by 0.3 %"],
)
def test_other_memory_is_not_listed(evidence, used):
    assert growth(evidence, used) == []


def test_an_hour_is_too_short_to_call_it_growth(evidence):
    assert growth(evidence, lambda t: (40 + 10 * t / HOUR_S) * 2**30, hours=1) == []

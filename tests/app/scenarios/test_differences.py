"""Two sides compared: the interval of a difference of speeds, and both on one axis."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from goodput_scenarios.comparison import gate
from goodput_scenarios.comparison.aligned import PROGRESS, STEP, aligned
from goodput_scenarios.comparison.differences import (
    Estimate,
    difference,
    effective_count,
    of_runs,
    of_steps,
)
from goodput_scenarios.comparison.gate import Limit
from goodput_scenarios.comparison.speeds import Speed

SEEDS, STEPS, NOISE = 200, 200, 0.01
LIMIT = Limit("slower", 0.03)


@pytest.fixture(scope="module", params=[0.0, 0.5, 0.8, 0.9])
def pairs(request):
    """Give the noise of two runs a seed, autocorrelated from step to step: its mean is 1."""
    memory = request.param
    shocks = np.random.default_rng(7).standard_normal((STEPS + 100, 2, SEEDS))
    noise = np.zeros_like(shocks)
    for step in range(1, len(shocks)):
        noise[step] = memory * noise[step - 1] + np.sqrt(1 - memory**2) * shocks[step]
    return 1 + NOISE * noise[100:]


def changes(pairs, slowdown):
    """Return the differences of pairs where the steps of B take longer by a factor."""
    work = np.ones(STEPS)
    return [
        difference(of_steps(work, a), of_steps(work, b * slowdown))
        for a, b in zip(pairs[:, 0].T, pairs[:, 1].T, strict=True)
    ]


def failed(found):
    outcomes = [gate.judged(LIMIT, [speed(one)]).outcome for one in found]
    return outcomes.count("failed") / len(outcomes)


def speed(found):
    return Speed("llm", "samples", found, None, "steps", None, (), ("a",), ("b",))


def test_six_per_cent_slower_fails_a_gate_of_three_and_equal_pairs_do_not(pairs):
    assert failed(changes(pairs, 1.06)) >= 0.95
    assert failed(changes(pairs, 1.0)) <= 0.02


def test_the_interval_holds_the_difference_about_as_often_as_it_says(pairs):
    """Of 200 steps with an autocorrelation of 0.9 some 11 are independent: it is 90 % there."""
    found = changes(pairs, 1 / 0.97)

    assert np.mean([one.low_ratio <= -0.03 <= one.high_ratio for one in found]) >= 0.88
    assert failed(found) <= 0.07  # at the limit itself: one side of the interval


def test_the_larger_batch_is_compared_by_its_samples():
    """A published table of batches and step times: the fastest takes the second longest steps."""
    batches = [16, 16, 16, 32, 32]
    times = [0.692, 0.642, 0.895, 1.7, 0.941]
    found = [
        of_steps(np.full(50, float(batch)), np.full(50, time_s))
        for batch, time_s in zip(batches, times, strict=True)
    ]

    assert [round(one.speed, 2) for one in found] == [23.12, 24.92, 17.88, 18.82, 34.01]
    gains = [round(100 * difference(found[0], one).change_ratio, 1) for one in found]
    assert gains == [0.0, 7.8, -22.7, -18.6, 47.1]
    assert difference(found[0], found[4]).low_ratio > 0.47


def test_constant_steps_are_as_many_as_they_are_and_a_gate_of_nothing_does_not_pass():
    assert effective_count(np.zeros(30)) == 30
    assert of_steps(np.ones(30), np.full(30, 2.0)).variance == 0
    assert gate.judged(LIMIT, []).outcome == "not comparable"


def test_runs_count_where_there_are_several():
    """Each run is steady, but they differ: the interval is that of runs."""
    sides = [
        [Estimate(level * each, 100, 100, 0.0, 0.0) for each in (0.99, 1.0, 1.01, 1.0)]
        for level in (1.0, 0.96)
    ]

    found = difference(*map(of_runs, sides))

    assert (found.a.count, round(found.a.spread_ratio, 4)) == (4, 0.0082)
    assert found.change_ratio == pytest.approx(-0.04)
    assert -0.06 < found.low_ratio < -0.04 < found.high_ratio < -0.02


SPEED = Speed("llm", "samples", None, None, "steps", None, (), ("a",), ("b",))


def side(run, first, count, step_ms, samples):
    steps = pl.DataFrame({
        "run_key": run, "step": range(first, first + count),
        "end_ms": [step_ms * number for number in range(1, count + 1)], "step_ms": step_ms,
        "tokens": None, "samples": samples,
    })  # fmt: skip
    return SimpleNamespace(steps=steps)


def of_two(by):
    """Return A, steps 10 to 19 of 2 s and 8 samples, and B, 15 to 24 of 3 s and 16 samples."""
    found = SimpleNamespace(a=side("a", 10, 10, 2000, 8.0), b=side("b", 15, 10, 3000, 16.0))
    return aligned(found, SPEED, by)


def test_by_step_the_same_numbers_stand_together_and_by_progress_the_same_work():
    rows, by_work = of_two(STEP), of_two(PROGRESS)

    assert rows.height == 15
    assert rows["step_a_s"].to_list() == [2.0] * 10 + [None] * 5
    assert rows["step_b_s"].to_list() == [None] * 5 + [3.0] * 10
    both = rows.filter(pl.col("change_ratio").is_not_null())
    assert both["change_ratio"].to_list() == pytest.approx([1 / 3] * 5)  # 5.33 for 4 a second
    of_a = by_work.filter(pl.col("step_a_s").is_not_null())
    assert of_a["position"].max() == pytest.approx(80, abs=2)
    assert by_work["position"].max() == pytest.approx(160, abs=2)
    without = SimpleNamespace(a=side("x", 1, 0, 1, 1.0), b=side("y", 1, 0, 1, 1.0))
    assert aligned(without, SPEED, STEP).is_empty()

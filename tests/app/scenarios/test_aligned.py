"""Two sides on one axis: by the number of the step, or by work done."""

from types import SimpleNamespace

import polars as pl
import pytest

from goodput_scenarios.comparison.aligned import PROGRESS, STEP, aligned
from goodput_scenarios.comparison.speeds import Speed

SPEED = Speed("llm", "samples", None, None, "steps", None, (), ("a",), ("b",))


def side(run, first, count, step_ms, samples):
    steps = pl.DataFrame(
        {
            "run_key": run,
            "step": range(first, first + count),
            "end_ms": [step_ms * number for number in range(1, count + 1)],
            "step_ms": step_ms,
            "tokens": None,
            "samples": samples,
        }
    )
    return SimpleNamespace(steps=steps)


def of_two(by):
    """Return A, steps 10 to 19 of 2 s and 8 samples, and B, 15 to 24 of 3 s and 16 samples."""
    found = SimpleNamespace(a=side("a", 10, 10, 2000, 8.0), b=side("b", 15, 10, 3000, 16.0))
    return aligned(found, SPEED, by)


def test_by_step_the_same_numbers_stand_together():
    rows = of_two(STEP)

    assert rows.height == 15
    assert rows["step_a_s"].to_list() == [2.0] * 10 + [None] * 5
    assert rows["step_b_s"].to_list() == [None] * 5 + [3.0] * 10
    both = rows.filter(pl.col("change_ratio").is_not_null())
    assert both["change_ratio"].to_list() == pytest.approx([1 / 3] * 5)  # 5.33 for 4 a second


def test_by_progress_the_same_work_stands_together():
    rows = of_two(PROGRESS)

    assert rows.filter(pl.col("step_a_s").is_not_null())["position"].max() == pytest.approx(
        80, abs=2
    )
    assert rows["position"].max() == pytest.approx(160, abs=2)


def test_sides_without_steps_have_no_rows():
    found = SimpleNamespace(a=side("x", 1, 0, 1, 1.0), b=side("y", 1, 0, 1, 1.0))

    assert aligned(found, SPEED, STEP).is_empty()

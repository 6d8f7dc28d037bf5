"""Step time and speed of two sides on one axis: by the number of the step, or by work done."""

import polars as pl

from goodput_scenarios.comparison.compare import Comparison
from goodput_scenarios.comparison.speeds import WORK, Speed

BINS = 150
STEP, PROGRESS = "step", "progress"


def aligned(found: Comparison, speed: Speed, by: str) -> pl.DataFrame:
    """Return mean step time and speed of both sides in stretches of steps.

    by: STEP: the same step numbers; PROGRESS: the same work done since the first step that is
    compared, in tokens or samples, else in steps.
    Columns: position (the middle of the stretch), step_a_s, step_b_s, speed_a, speed_b,
    change_ratio (of the speed); null where a side has no step.
    """
    placed = [
        _placed(side.steps.filter(pl.col("run_key").is_in(runs)), speed.unit, by)
        for side, runs in ((found.a, speed.runs_a), (found.b, speed.runs_b))
    ]
    ends = pl.concat(placed)["position"]
    first, last = ends.min(), ends.max()
    if first is None or last is None:
        return pl.DataFrame(schema=dict.fromkeys(_COLUMNS, pl.Float64))
    width = max((float(last) - float(first)) / BINS, 1e-9)  # type: ignore[arg-type]
    if by == STEP:
        width = max(1.0, -(-(width) // 1))
    of_sides = [
        _binned(side, float(first), width, name)  # type: ignore[arg-type]
        for side, name in zip(placed, ("a", "b"), strict=True)
    ]
    return (
        of_sides[0]
        .join(of_sides[1], on="bin", how="full", coalesce=True)
        .sort("bin")
        .with_columns(
            position=float(first) + (pl.col("bin") + 0.5) * width,  # type: ignore[arg-type]
            change_ratio=pl.col("speed_b") / pl.col("speed_a") - 1,
        )
        .select(_COLUMNS)
    )


_COLUMNS = ("position", "step_a_s", "step_b_s", "speed_a", "speed_b", "change_ratio")


def _placed(steps: pl.DataFrame, unit: str, by: str) -> pl.DataFrame:
    work = pl.col(unit).cast(pl.Float64) if unit in WORK else pl.lit(1.0)
    position = (
        pl.col("step").cast(pl.Float64)
        if by == STEP
        else pl.col("work").cum_sum().over("run_key", order_by="end_ms")
    )
    return steps.with_columns(work=work).with_columns(position=position)


def _binned(steps: pl.DataFrame, first: float, width: float, name: str) -> pl.DataFrame:
    time_s = pl.col("step_ms").sum() / 1000
    return steps.group_by(
        ((pl.col("position") - first) / width).floor().cast(pl.Int64).clip(0, BINS).alias("bin")
    ).agg(
        (time_s / pl.len()).alias(f"step_{name}_s"),
        (pl.col("work").sum() / time_s).alias(f"speed_{name}"),
    )

"""Percent or ratio, where a name leaves it open: DCGM 4.6 prints `GPU_UTIL_RATIO` as 0 to 100.

The values decide per node and name: over 1 is percent, between 0 and 1 is a ratio. While all are
0 or 1 the scale is undecided, and the values are stored under the raw name, without a unit.
"""

from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from goodput_ingest.gpu_metrics.memory import Memory
from goodput_ingest.gpu_metrics.plan import NARROW, Plan

PERCENT, RATIO = 0.01, 1.0
PERCENT_MAX: Final = 100  # more is a fault of the reading and decides nothing


def decided(
    points: pl.DataFrame,
    series: pl.DataFrame,
    label_sets: pl.DataFrame,
    plan: Plan,
    memory: Memory,
) -> Plan:
    """Return the plan with the scale of every series settled; decisions are remembered."""
    if not plan.is_undecided.any():
        return plan
    undecided = pl.DataFrame(
        {
            "series": np.flatnonzero(plan.is_undecided),
            "metric": series["metric"].filter(pl.Series(plan.is_undecided)),
            "node": label_sets["node"]
            .gather(series["labels"])
            .filter(pl.Series(plan.is_undecided)),
        }
    ).with_columns(pl.col("node").fill_null(""))
    _decide(points, undecided, memory)
    scales = [memory.scales.get(key) for key in undecided.select("node", "metric").iter_rows()]
    divisor, column, metric = plan.divisor.copy(), plan.column.copy(), plan.metric.copy()
    low, high = plan.low.copy(), plan.high.copy()
    metrics = list(plan.metrics)
    for (row, raw_name, _), scale in zip(undecided.iter_rows(), scales, strict=True):
        if scale is not None:
            divisor[row] = round(1 / scale)
            continue
        if raw_name not in metrics:
            metrics.append(raw_name)
        column[row], metric[row] = NARROW, metrics.index(raw_name)
        low[row], high[row] = -np.inf, np.inf
    return replace(
        plan, divisor=divisor, column=column, metric=metric, low=low, high=high, metrics=metrics
    )


def _decide(points: pl.DataFrame, undecided: pl.DataFrame, memory: Memory) -> None:
    value = pl.col("value")
    evidence = (
        points.join(
            undecided.with_columns(pl.col("series").cast(points.schema["series"])), on="series"
        )
        .group_by("node", "metric")
        .agg(
            is_percent=((value > 1) & (value <= PERCENT_MAX)).any(),
            is_ratio=((value > 0) & (value < 1)).any(),
        )
    )
    for node, metric, is_percent, is_ratio in evidence.iter_rows():
        if is_percent:
            memory.scales.setdefault((node, metric), PERCENT)
        elif is_ratio:
            memory.scales.setdefault((node, metric), RATIO)

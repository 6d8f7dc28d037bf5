"""Maps each series to a row, a column and a unit, or to the reason why it is not used.

It decides per distinct name and label set, which are few; points, which are many, only look up
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from goodput_ingest.gpu_metrics.catalogue import WIDE, Metric, resolve

if TYPE_CHECKING:
    from numpy.typing import NDArray

NARROW: Final = -1
NOBODY: Final = -1
METRIC_MAX_CHARS: Final = 200
RUNTIME: Final = ("go_", "process_", "promhttp_", "python_")  # what an exporter says of itself
_COLUMN_OF: Final = {name: index for index, name in enumerate(WIDE)}


@dataclass(frozen=True)
class Plan:
    """Arrays with one value a series, and the GPUs and metrics that their numbers stand for.

    entity: row of `entities` (gpu_uuid, gpu_instance); NOBODY where the series is of no GPU, or
        where a MIG instance or a further partition prints a number that was not measured on it.
    metric: row of `metrics`, canonical names with the labels that distinguish series of one.
    column: index in WIDE, or NARROW.
    multiplier, divisor: raw * multiplier / divisor is the value; one of them is 1, since 783 / 10
        is 78.3 and 783 * 0.1 is not.
    is_undecided: percent or ratio, the name does not say.
    without_gpu: names of series that are of no GPU.
    """

    entity: NDArray[np.int64]
    metric: NDArray[np.int64]
    column: NDArray[np.int64]
    multiplier: NDArray[np.float64]
    divisor: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    is_undecided: NDArray[np.bool_]
    entities: pl.DataFrame
    metrics: list[str]
    without_gpu: list[str]


def plan(series: pl.DataFrame, label_sets: pl.DataFrame) -> Plan:
    """Return the mapping of each series; see `gpu_rows` for the frames."""
    labelled = pl.concat(
        [
            series.select("metric"),
            label_sets.select("gpu_uuid", "gpu_instance", "is_other_partition", "part")[
                series["labels"]
            ],
        ],
        how="horizontal",
    )
    combinations = labelled.select("metric", "part").unique(maintain_order=True)
    found = [_of_part(name, part) for name, part in combinations.iter_rows()]
    metrics = list(dict.fromkeys(m.metric for m in found))
    number = {name: i for i, name in enumerate(metrics)}
    rules = combinations.with_columns(
        pl.Series("number", [number[m.metric] for m in found], pl.Int64),
        pl.Series("column", [_COLUMN_OF.get(m.metric, NARROW) for m in found], pl.Int64),
        pl.Series("multiplier", [_multiplier(m) for m in found], pl.Float64),
        pl.Series("divisor", [_divisor(m) for m in found], pl.Float64),
        pl.Series("low", [m.low for m in found], pl.Float64),
        pl.Series("high", [m.high for m in found], pl.Float64),
        pl.Series("is_undecided", [m.scale is None for m in found], pl.Boolean),
        pl.Series("on_mig", [m.on_mig for m in found], pl.String),
    )
    ruled = labelled.join(rules, on=["metric", "part"], how="left", maintain_order="left")
    ruled = ruled.with_columns(_entity_columns())
    entities = (
        ruled.filter(pl.col("of_uuid").is_not_null())
        .select(gpu_uuid="of_uuid", gpu_instance="of_instance")
        .unique(maintain_order=True)
        .with_row_index("entity")
    )
    entity = ruled.join(
        entities,
        left_on=["of_uuid", "of_instance"],
        right_on=["gpu_uuid", "gpu_instance"],
        how="left",
        maintain_order="left",
    )["entity"]
    return Plan(
        entity=entity.cast(pl.Int64).fill_null(NOBODY).to_numpy(),
        metric=ruled["number"].to_numpy(),
        column=ruled["column"].to_numpy(),
        multiplier=ruled["multiplier"].to_numpy(),
        divisor=ruled["divisor"].to_numpy(),
        low=ruled["low"].to_numpy(),
        high=ruled["high"].to_numpy(),
        is_undecided=ruled["is_undecided"].to_numpy(),
        entities=entities.select(
            pl.col(name).cast(pl.Enum(entities[name].unique(maintain_order=True)))
            for name in ("gpu_uuid", "gpu_instance")
        ),
        metrics=metrics,
        without_gpu=[
            name
            for name in labelled.filter(pl.col("gpu_uuid").is_null())["metric"].unique().sort()
            if not name.startswith(RUNTIME)
        ],
    )


def _of_part(raw_name: str, part: str) -> Metric:
    """Return the metric of a series that may be one of several of a GPU (a link, a clock)."""
    for piece in part.split(","):
        if piece and (found := resolve(f"{raw_name}{{{piece}}}")) and found.kind != "unknown":
            return found
    found = resolve(raw_name) or Metric(raw_name, "")
    if not part:
        return replace(found, metric=found.metric[:METRIC_MAX_CHARS])
    # one link of many is not the GPU's reading: it gets a name of its own
    return replace(found, metric=f"{found.metric}{{{part}}}"[:METRIC_MAX_CHARS])


def _multiplier(metric: Metric) -> float:
    return metric.scale if metric.scale is not None and metric.scale >= 1 else 1.0


def _divisor(metric: Metric) -> float:
    return float(round(1 / metric.scale)) if metric.scale is not None and metric.scale < 1 else 1.0


def _entity_columns() -> list[pl.Expr]:
    """Return the GPU or instance of each reading: part series may repeat values of the whole."""
    is_part = pl.col("gpu_instance") != ""
    is_measured = (
        (pl.col("on_mig") == "instance")
        | ~is_part
        | ((pl.col("on_mig") == "whole") & ~pl.col("is_other_partition"))
    )
    of_part = is_part & (pl.col("on_mig") == "instance")
    return [
        pl.when(is_measured).then("gpu_uuid").alias("of_uuid"),
        pl.when(of_part).then("gpu_instance").otherwise(pl.lit("")).alias("of_instance"),
    ]

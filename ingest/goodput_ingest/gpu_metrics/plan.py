"""Maps each series to a row, a column and a unit, or to the reason why it is not used.

It decides per distinct name and label set, which are few; points, which are many, only look up
numbers.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodput_ingest.gpu_metrics.catalogue import WIDE, Metric, exporter_of, resolve
from goodput_ingest.gpu_metrics.labels import BY_HOST

NARROW: Final = -1
UNSTORED: Final = -2
NOBODY: Final = -1
METRIC_MAX_CHARS: Final = 200
# what an exporter says of itself; gpu_nodes_total of AMD's counts the GPUs
RUNTIME: Final = ("go_", "process_", "promhttp_", "python_", "gpu_nodes_total")
OF: Final = "hw_type="
OF_GPU: Final = f'{OF}"gpu"'  # says what the series is of, not which of several it is
_COLUMN_OF: Final = {name: index for index, name in enumerate(WIDE)}


@dataclass(frozen=True)
class Plan:
    """Arrays with one value a series, and the GPUs and metrics that their numbers stand for.

    entity: row of `entities` (gpu_uuid, gpu_instance); NOBODY where the series is of no GPU, or
        where a MIG instance or a further partition prints a number that was not measured on it.
    metric: row of `metrics`, canonical names with the labels that distinguish series of one.
    column: index in WIDE, NARROW, or UNSTORED where the series only names an owner.
    multiplier, divisor: raw * multiplier / divisor is the value; one of them is 1, since 783 / 10
        is 78.3 and 783 * 0.1 is not.
    is_undecided: percent or ratio, the name does not say.
    without_gpu: names of series that are of no GPU, with the reason of their exporter, or ''.
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
    without_gpu: list[tuple[str, str]]


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
        pl.Series("column", [_column(m) for m in found], pl.Int64),
        pl.Series("multiplier", [_multiplier(m) for m in found], pl.Float64),
        pl.Series("divisor", [_divisor(m) for m in found], pl.Float64),
        pl.Series("low", [m.low for m in found], pl.Float64),
        pl.Series("high", [m.high for m in found], pl.Float64),
        pl.Series("is_undecided", [m.scale is None for m in found], pl.Boolean),
        pl.Series("on_mig", [m.on_mig for m in found], pl.String),
        pl.Series("is_elsewhere", [m.kind == "elsewhere" for m in found], pl.Boolean),
    )
    ruled = labelled.join(rules, on=["metric", "part"], how="left", maintain_order="left")
    is_guess = pl.col("gpu_uuid").str.contains(BY_HOST, literal=True)
    is_of_other = pl.col("part").str.contains(OF, literal=True)
    ruled = ruled.with_columns(pl.col("is_elsewhere") & (is_guess | is_of_other))
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
        without_gpu=_without_gpu(ruled),
    )


def _without_gpu(ruled: pl.DataFrame) -> list[tuple[str, str]]:
    """Return names of series without a GPU, and why their exporter has none."""
    names = ruled.filter(pl.col("gpu_uuid").is_null() | pl.col("is_elsewhere"))["metric"]
    named = ((name, exporter_of(name)) for name in names.unique().sort())
    return [
        (name, exporter.without_gpu if exporter and resolve(name) else "")
        for name, exporter in named
        if not name.startswith(RUNTIME)
    ]


def _of_part(raw_name: str, part: str) -> Metric:
    """Return the metric of a series that may be one of several of a GPU (a link, a clock)."""
    pieces = part.split(",") if part else []
    for piece in dict.fromkeys((part, *pieces)):
        if piece and (found := resolve(f"{raw_name}{{{piece}}}")) and found.kind != "unknown":
            return found
    found = resolve(raw_name)
    if found is None:
        exporter = exporter_of(raw_name)
        is_elsewhere = exporter is not None and exporter.unknown == "elsewhere"
        is_elsewhere = is_elsewhere and OF_GPU not in pieces
        found = Metric(raw_name, "", kind="elsewhere" if is_elsewhere else "unknown")
    part = ",".join(piece for piece in pieces if piece != OF_GPU)
    if not part or found.kind == "owner":
        return replace(found, metric=found.metric[:METRIC_MAX_CHARS])
    # one link of many is not the GPU's reading: it gets a name of its own
    return replace(found, metric=f"{found.metric}{{{part}}}"[:METRIC_MAX_CHARS])


def _column(metric: Metric) -> int:
    return UNSTORED if metric.kind == "owner" else _COLUMN_OF.get(metric.metric, NARROW)


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
        pl.when(is_measured & ~pl.col("is_elsewhere")).then("gpu_uuid").alias("of_uuid"),
        pl.when(of_part).then("gpu_instance").otherwise(pl.lit("")).alias("of_instance"),
    ]

"""Points into rows of raw.gpu_samples (wide) and raw.gpu_samples_other (narrow).

Several series may repeat one reading of a GPU: a copy for each pod or job, a copy for each MIG
instance, two names of one metric. They become one value, the highest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodput_ingest.gpu_metrics.catalogue import WIDE
from goodput_ingest.gpu_metrics.keys import rows_of
from goodput_ingest.gpu_metrics.plan import NARROW, NOBODY, Plan

ROUNDING: Final = 1.0001  # a share of 1.00005 is rounding, more is a fault of the reading
INTEGERS: Final = ("clocks_event_reasons", "memory_used_bytes")
ZERO_IS_MISSING: Final = "memory_temperature_c"  # boards without the sensor say 0
# what DCGM prints for "no value" (dcgmlib/dcgm_structs.h): blank, not found, not supported, no
# permission; of 64-bit integers all four are this one number once they are floats
BLANK_INT64: Final = 9.2e18
BLANK_INT32: Final = (2_147_483_632.0, 2_147_483_635.0)
BLANK_FLOAT: Final = (140_737_488_355_328.0, 140_737_488_355_331.0)


@dataclass(frozen=True)
class Points:
    """Arrays of one length: series, moment (its row of `moments`), value in canonical unit or NaN.

    is_bad: what was printed is no value.
    """

    series: NDArray[np.int64]
    moment: NDArray[np.int64]
    value: NDArray[np.float64]
    is_bad: NDArray[np.bool_]
    moments: pl.Series

    def where(self, mask: NDArray[np.bool_]) -> Points:
        """Return the points of the mask."""
        return Points(
            self.series[mask], self.moment[mask], self.value[mask], self.is_bad[mask], self.moments
        )


def in_units(points: pl.DataFrame, plan: Plan) -> Points:
    """Return the points of GPUs in canonical units; impossible values are NaN and marked."""
    series = points["series"].cast(pl.Int64).to_numpy()
    of_gpu = plan.entity[series] != NOBODY
    moments, moment = _moments(points["ts"])
    raw = points["value"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    if not of_gpu.all():
        series, moment, raw = series[of_gpu], moment[of_gpu], raw[of_gpu]
    with np.errstate(over="ignore", invalid="ignore"):
        value = raw * plan.multiplier[series] / plan.divisor[series]
        high = plan.high[series]
        is_bad = ~((value >= plan.low[series]) & (value <= high * ROUNDING)) | _is_blank(raw)
    value = np.minimum(value, high)
    value[is_bad] = np.nan
    return Points(series, moment, value, is_bad, moments)


def wide(points: Points, plan: Plan) -> pl.DataFrame:
    """Return rows of raw.gpu_samples (without `source`): a GPU or instance at a moment."""
    points = points.where(plan.column[points.series] >= 0)
    entities = plan.entities.height
    key = points.moment * entities + plan.entity[points.series]
    row, keys = rows_of(key, entities * len(points.moments))
    column = plan.column[points.series]
    cells = np.full((len(WIDE), len(keys)), np.nan)
    cells[column, row] = points.value
    if np.count_nonzero(~np.isnan(cells)) < np.count_nonzero(~points.is_bad):
        np.fmax.at(cells, (column, row), points.value)
    is_flagged = np.zeros(len(keys), dtype=bool)
    is_flagged[row[points.is_bad]] = True
    data: dict[str, Any] = _flagged_metrics(row[points.is_bad], column[points.is_bad], len(keys))
    for index, name in enumerate(WIDE):
        cell = cells[index]
        if name == ZERO_IS_MISSING:
            cell[cell == 0] = np.nan
        if not np.isnan(cell).all():
            data[name] = pl.Series(cell, nan_to_null=True)
            if name in INTEGERS:
                data[name] = data[name].cast(pl.Int64)
    return _keyed(keys, points, plan).with_columns(**data, is_flagged=pl.Series(is_flagged))


def _flagged_metrics(
    rows: NDArray[np.int64], columns: NDArray[np.int64], height: int
) -> dict[str, pl.Series]:
    """Return the column `flagged_metrics`, of the rows and the columns of WIDE with a bad value."""
    if not len(rows):
        return {}
    by_row: dict[int, list[str]] = {}
    for row, column in sorted(set(zip(rows.tolist(), columns.tolist(), strict=True))):
        by_row.setdefault(row, []).append(WIDE[column])
    texts = [",".join(by_row[row]) if row in by_row else None for row in range(height)]
    return {"flagged_metrics": pl.Series(texts, dtype=pl.String)}


def narrow(points: Points, plan: Plan) -> pl.DataFrame:
    """Return rows of raw.gpu_samples_other (without `source`): a GPU, moment and metric."""
    points = points.where(plan.column[points.series] == NARROW)
    entities, metrics = plan.entities.height, len(plan.metrics)
    metric = plan.metric[points.series]
    key = (points.moment * entities + plan.entity[points.series]) * metrics + metric
    row, keys = rows_of(key, entities * metrics * len(points.moments))
    if len(keys) == len(key):  # usually nothing repeats
        values, keys = points.value, key
    else:
        values = np.full(len(keys), np.nan)
        np.fmax.at(values, row, points.value)
    rows = _keyed(keys // metrics, points, plan)
    names = pl.Series(plan.metrics, dtype=pl.Enum(plan.metrics))
    return rows.with_columns(
        metric=names.gather(pl.Series(keys % metrics)), value=pl.Series(values, nan_to_null=True)
    )


def _moments(ts: pl.Series) -> tuple[pl.Series, NDArray[np.int64]]:
    """Return the distinct moments, in order, and the row of each point's among them.

    Lines of a scrape stand together, with one moment: only where it changes is it looked up.
    """
    us = ts.to_physical().to_numpy()
    starts = np.flatnonzero(np.append(True, us[1:] != us[:-1])[: len(us)])
    of_starts = pl.Series(us[starts], dtype=pl.Int64)
    moments = of_starts.unique().sort()
    moment = moments.search_sorted(of_starts).cast(pl.Int64).to_numpy()
    return moments.cast(ts.dtype), np.repeat(moment, np.diff(np.append(starts, len(us))))


def _is_blank(raw: NDArray[np.float64]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = raw >= BLANK_INT32[0]  # the least of them
    large = raw[found]
    is_blank = large >= BLANK_INT64
    for first, last in (BLANK_INT32, BLANK_FLOAT):
        is_blank |= (large >= first) & (large <= last)
    found[found] = is_blank
    return found


def _keyed(keys: NDArray[np.int64], points: Points, plan: Plan) -> pl.DataFrame:
    """Return GPU, instance and moment of rows whose key is moment * entities + entity."""
    entities = plan.entities.height
    who = plan.entities[pl.Series(keys % max(entities, 1))]
    return who.with_columns(ts=points.moments.gather(pl.Series(keys // max(entities, 1))))

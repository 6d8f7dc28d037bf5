"""What anomalies are put on: jobs of a made-up fleet, and all its readings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]
Change = Callable[[NDArray[Any]], None]

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
FIRST_MS, SLOT_MS, LENGTH_MS = 40 * MINUTE_MS, 80 * MINUTE_MS, 60 * MINUTE_MS
USES = ("engine_active_ratio", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio")
C_PER_W = 44 / 630  # of the fleet: how much warmer a GPU is by its power
BLANK_W = 140_737_488_355_328.0  # DCGM's blank double


@dataclass(frozen=True)
class Case:
    """An anomaly: its rule, what it is about, and other rules that may see it as well.

    is_sure: the readings that its rule compares are there.
    """

    rule: str
    subject: str
    also: tuple[str, ...] = ()
    is_sure: bool = True


@dataclass
class Job:
    """A job of the plan: when it ran, on which GPUs."""

    run_id: str
    begin: int
    end: int
    gpus: list[str]

    def slot(self, number: int, length: int = LENGTH_MS) -> tuple[int, int]:
        """Return an hour in its life, the same number for all that happens then."""
        begin = self.begin + FIRST_MS + number * SLOT_MS
        # whole ten minutes
        begin = -(-begin // (10 * MINUTE_MS)) * 10 * MINUTE_MS
        return begin, begin + length


@dataclass
class Readings:
    """All readings of the fleet, to be spoilt column by column."""

    frame: pl.DataFrame
    columns: Columns = field(init=False)
    is_dropped: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        """Take the columns out of the frame."""
        kinds = self.frame.schema
        self.columns = {
            name: self.frame[name].to_numpy().copy() for name in kinds if kinds[name].is_numeric()
        }
        self.at_ms = self.frame["ts"].dt.epoch("ms").to_numpy()
        self.gpu = self.frame["gpu_uuid"].to_numpy()
        self.is_dropped = np.zeros(self.frame.height, dtype=bool)

    def of(self, gpus: list[str], span: tuple[int, int]) -> NDArray[np.int64]:
        """Return the rows of GPUs in a time, in order of time."""
        is_in = (self.at_ms >= span[0]) & (self.at_ms < span[1])
        return np.flatnonzero(is_in & np.isin(self.gpu, gpus))

    def scale(self, rows: NDArray[Any], factor: float) -> None:
        """Lower activity and power of rows together."""
        for name in USES:
            self.columns[name][rows] *= factor
        self.draw(rows, 78 + (self.columns["power_w"][rows] - 78) * factor)

    def draw(self, rows: NDArray[Any], power_w: NDArray[Any]) -> None:
        """Change the power of rows, and their temperature with it."""
        before = self.columns["power_w"][rows]
        is_real = before < BLANK_W
        self.columns["power_w"][rows] = np.where(is_real, power_w, before)
        rise = np.where(is_real, C_PER_W * (power_w - before), 0.0)
        self.columns["gpu_temperature_c"][rows] += np.rint(rise)

    def write(self, folder: Path) -> None:
        """Write one file instead of all."""
        for file in folder.iterdir():
            file.unlink()
        kinds = self.frame.schema
        frame = self.frame.with_columns(
            pl.Series(name, values).cast(kinds[name]).fill_nan(None)
            if kinds[name].is_float()
            else pl.Series(name, values).cast(kinds[name])
            for name, values in self.columns.items()
        )
        frame.filter(pl.Series(~self.is_dropped)).write_parquet(folder / "gpu-all.parquet")

"""Readings of all GPUs as a site exports them in bulk: a wide Parquet file an hour, ready to read.

Columns are described in `goodput_ingest.sources.site.telemetry_parquet`. Written file by file, so
that memory stays bounded by an hour of a big fleet.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from goodput_synthetic.fleet.activity import STATE, STATES, Activity
from goodput_synthetic.fleet.fleet import (
    MEMORY_BYTES,
    POWER_LIMIT_W,
    SLICES,
    Fleet,
    Ints,
)
from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.schedule import Schedule
from goodput_synthetic.fleet.scrapes import Scrapes
from goodput_synthetic.fleet.written.kernels import Kernels

HOUR_MS = 3_600 * SECOND
ROWS_PER_FILE = 600_000  # at most, as far as an hour has no more
HOURS_PER_FILE = (12, 6, 4, 3, 2, 1)
ROWS_PER_GROUP = 131_072
HOURLY = ("rows_remapped_uncorrectable_total", "row_remap_failed", "power_limit_enforced_w")
# state: engine activity, its spread, tensor share of it, memory share of it, NVLink GB/s
_FEEL = {
    "free": (0.0, 0.0, 0.0, 0.0, 0.0),
    "quiet": (0.0, 0.0, 0.0, 0.0, 0.0),
    "empty": (0.0, 0.0, 0.0, 0.0, 0.0),
    "restore": (0.07, 0.02, 0.0, 0.5, 0.0),
    "compile": (0.22, 0.08, 0.3, 0.3, 1.0),
    "step": (1.0, 0.03, 0.52, 0.55, 60.0),
    "starved": (0.55, 0.22, 0.5, 0.5, 25.0),
    "throttled": (0.93, 0.03, 0.4, 0.5, 35.0),
    "save": (1.0, 0.004, 0.0, 0.05, 0.2),
    "eval": (0.62, 0.05, 0.35, 0.5, 12.0),
    "hang": (1.0, 0.0, 0.0, 0.01, 0.0),
    "light": (0.3, 0.12, 0.25, 0.4, 0.0),
}
FEEL = np.array([_FEEL[name] for name in STATES])
SCALED = np.array([name in ("step", "starved", "throttled", "eval") for name in STATES])
HW_THERMAL, SW_POWER_CAP, GPU_IDLE = 0x40, 0x4, 0x1
CLOCK_HZ, IDLE_CLOCK_HZ, HOT_CLOCK_HZ = 1_980_000_000.0, 345_000_000.0, 1_140_000_000.0
ERRORS = ("ecc_uncorrected_volatile_total", "pcie_replay_total")  # hourly, too
REPLAYS_PER_HOUR, REPLAY_HOURS = 25, 96  # of one GPU that sits badly in its slot
ODD_SHARE = 3e-5  # readings with a sentinel or an impossible value
BLANK_INT, BLANK_FLOAT = 9_223_372_036_854_775_794, 140_737_488_355_328.0
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Readings:
    """Readings of a file's hours before they become columns, flat, units by rounds."""

    unit: Ints
    at: Ints
    state: Ints
    life: Ints
    is_special: npt.NDArray[np.bool_]
    is_profiled: npt.NDArray[np.bool_]
    is_read: npt.NDArray[np.bool_]
    rounds: int


class Telemetry:
    """The exporter of the whole fleet, with the energy counters that go on from hour to read."""

    def __init__(
        self, fleet: Fleet, schedule: Schedule, scrapes: Scrapes, activity: Activity,
        kernels: Kernels, seed: int, *, has_error_counters: bool = False,
    ) -> None:  # fmt: skip
        self.fleet = fleet
        self.scrapes = scrapes
        self.activity = activity
        self.seed = seed
        rng = np.random.default_rng([seed, 9])
        gpus = len(fleet.gpu_uuids)
        self.energy_j = rng.uniform(1e9, 9e9, gpus).round()
        self.corrected = rng.poisson(0.4, gpus).astype(np.int64)
        self.bursts = kernels.corrected
        self.remaps = [(gpu, since, 1) for gpu, since in kernels.remapped]
        self.none = np.zeros(gpus, dtype=np.int64)
        replays = [(gpus // 2, n * HOUR_MS, REPLAYS_PER_HOUR) for n in range(REPLAY_HOURS)]
        counted = (kernels.uncorrected, replays) if has_error_counters else ()
        self.errors = dict(zip(ERRORS, counted, strict=False))
        self.remapped = np.random.default_rng([seed, 15]).binomial(2, 0.04, gpus).astype(np.int64)
        self.warmth_c = rng.normal(0, 2.5, gpus)
        self.uuids = pl.Series(fleet.gpu_uuids)
        self.instances = pl.Series(fleet.unit_instance)
        is_h200 = np.array([n.model == "h200" for n in fleet.nodes])[fleet.unit_node]
        whole = np.where(is_h200, MEMORY_BYTES["h200"], MEMORY_BYTES["h100"])
        self.memory_bytes = whole * fleet.unit_slices // SLICES
        self.is_part = fleet.unit_slices < SLICES
        self.boots = [
            (o.node, o.end_s * SECOND)
            for o in schedule.outages
            if o.state in ("down", "powered_off") and o.end_s is not None
        ]

    def write(self, folder: Path, start: datetime, total_ms: int) -> None:
        """Write the files, one while the next is being worked out."""
        folder.mkdir(parents=True, exist_ok=True)
        start_us = int(start.timestamp()) * 1_000_000
        rounds = HOUR_MS // self.scrapes.interval_ms * self._hours_per_file(total_ms)
        with ThreadPoolExecutor(1) as writer:
            pending = None
            last = total_ms // self.scrapes.interval_ms
            for first in range(0, last, rounds):
                frame = self.frame(first, min(rounds, last - first), start_us)
                if pending is not None:
                    pending.result()
                begin_us = start_us + first * self.scrapes.interval_ms * 1_000
                stamp = np.datetime64(begin_us, "us").item()
                path = folder / f"gpu-{stamp:%Y%m%dT%H}.parquet"
                pending = writer.submit(_write, frame, path)
            if pending is not None:
                pending.result()

    def _hours_per_file(self, total_ms: int) -> int:
        rows = len(self.fleet.unit_gpu) * (HOUR_MS // self.scrapes.interval_ms)
        hours = total_ms // HOUR_MS
        fits = (n for n in HOURS_PER_FILE if n * rows <= ROWS_PER_FILE and hours % n == 0)
        return next(fits, 1)

    def frame(self, first_round: int, rounds: int, start_us: int) -> pl.DataFrame:
        """Return some rounds of readings; rounds are asked for in order, so that counters grow."""
        found = self._readings(first_round, rounds)
        columns = self._columns(found, np.random.default_rng([self.seed, 10, first_round]))
        read = np.flatnonzero(found.is_read)
        unit = found.unit[read]
        frame = pl.DataFrame(
            {
                "ts": pl.Series(start_us + found.at[read] * 1_000).cast(pl.Datetime("us", "UTC")),
                "gpu_uuid": self.uuids.gather(self.fleet.unit_gpu[unit]),
                "gpu_instance": self.instances.gather(unit),
                **{name: values[read] for name, values in columns.items()},
            }
        )
        is_part = pl.Series(self.is_part[unit])
        is_unprofiled = pl.Series(~found.is_profiled[read])
        # slow counters are exported once an hour
        in_hour = (first_round + np.arange(found.rounds)) % (HOUR_MS // self.scrapes.interval_ms)
        is_due = pl.Series(np.tile(in_hour == 0, len(self.fleet.unit_gpu))[read])
        profiled = ("engine_active_ratio", "sm_active_ratio", "tensor_active_ratio")
        return frame.with_columns(
            pl.when(~is_part).then(pl.col("gpu_busy_ratio")).alias("gpu_busy_ratio"),
            *(
                pl.when(~is_unprofiled).then(pl.col(name)).alias(name)
                for name in (*profiled, "dram_active_ratio")
            ),
            pl.when(is_due)
            .then(pl.col("ecc_corrected_volatile_total"))
            .alias("ecc_corrected_volatile_total"),
            *(
                pl.when(is_due).then(pl.col(name)).alias(name)
                for name in (*HOURLY, *ERRORS)
                if name in columns
            ),
        )

    def _readings(self, first_round: int, rounds: int) -> Readings:
        scrapes = self.scrapes
        span = slice(first_round, first_round + rounds)
        node = self.fleet.unit_node
        at = scrapes.at[node, span]
        count = at.shape[1]
        unit = np.repeat(np.arange(len(node)), count)
        flat = at.ravel()
        life, place, is_special, state = self.activity.at(unit, flat)
        # in a blocking save one GPU writes and looks idle while the others spin in a barrier
        state = np.where((state == STATE["save"]) & (place == 0), STATE["quiet"], state)
        return Readings(
            unit, flat, state, life, is_special, scrapes.is_profiled[node, span].ravel(),
            scrapes.is_read[node, span].ravel(), count,
        )  # fmt: skip

    def _columns(self, read: Readings, rng: np.random.Generator) -> dict[str, Any]:
        size = len(read.unit)

        def noise(spread: float) -> Floats:
            return spread * rng.standard_normal(size, dtype=np.float32).astype(np.float64)

        feel = FEEL[read.state]
        level = np.where(SCALED[read.state], self.activity.level[read.life], 1.0)
        engine = feel[:, 0] * level + feel[:, 1] * noise(1.0)
        is_active = feel[:, 0] > 0
        engine = np.where(is_active, np.clip(engine, 0.02, 1.0), 0.0)
        tensor = np.clip(engine * feel[:, 2] * (1 + noise(0.04)), 0, 1)
        dram = np.clip(engine * feel[:, 3] * (1 + noise(0.04)), 0, 1)
        is_hot = (read.state == STATE["throttled"]) & read.is_special
        load = np.clip(0.25 * engine + 0.9 * tensor + 0.18 * dram, 0, 1.02)
        load = np.where(is_hot, load * 0.62, load)
        cap = np.where(read.life >= 0, self.activity.cap_w[read.life], POWER_LIMIT_W)
        power = np.clip(78 + (POWER_LIMIT_W - 78) * load + noise(4.0), 60, cap + 3)
        gpu = self.fleet.unit_gpu[read.unit]
        self._share_power(power, read)
        warm = 27 + 44 * (power - 70) / 630 + self.warmth_c[gpu] + noise(0.8)
        warm = np.where(is_hot, 87 + noise(0.7), np.minimum(warm, 82))
        is_capped = power > 0.975 * cap
        clock = np.where(is_active, CLOCK_HZ, IDLE_CLOCK_HZ)
        clock = np.where(is_capped, CLOCK_HZ - 1.5e7 * rng.integers(1, 12, size), clock)
        clock = np.where(is_hot, HOT_CLOCK_HZ + 1.5e7 * rng.integers(-4, 5, size), clock)
        reasons = np.where(is_active, 0, GPU_IDLE) | np.where(is_capped, SW_POWER_CAP, 0)
        reasons = np.where(is_hot, HW_THERMAL, reasons)
        nvlink = feel[:, 4] * 1e9 * np.clip(1 + noise(0.1), 0, None)
        pcie = np.where(is_active, 2.2e9, 4e5) * np.clip(1 + noise(0.25), 0.1, None)
        columns: dict[str, Any] = {
            "gpu_busy_ratio": np.where(is_active, np.rint(np.minimum(engine * 108, 100)), 0) / 100,
            "engine_active_ratio": np.rint(engine * 1e4) / 1e4,
            "sm_active_ratio": np.rint(engine * 8.4e3) / 1e4,
            "tensor_active_ratio": np.rint(tensor * 1e4) / 1e4,
            "dram_active_ratio": np.rint(dram * 1e4) / 1e4,
            "power_w": np.rint(power * 10) / 10,
            "energy_j": self._energy(power, read),
            "sm_clock_hz": clock,
            "memory_clock_hz": np.full(size, 2_619_000_000.0),
            "clocks_event_reasons": reasons.astype(np.int64),
            "gpu_temperature_c": np.rint(warm),
            "memory_temperature_c": np.rint(warm + 9),
            "memory_used_bytes": self._memory(read),
            "nvlink_tx_bytes_per_s": np.rint(nvlink / 1e6) * 1e6,
            "nvlink_rx_bytes_per_s": np.rint(nvlink / 1e6) * 1e6,
            "pcie_tx_bytes_per_s": np.rint(pcie / 2e5) * 1e5,
            "pcie_rx_bytes_per_s": np.rint(pcie / 1e5) * 1e5,
            "ecc_corrected_volatile_total": self._counted(read, self.corrected, self.bursts),
            "rows_remapped_uncorrectable_total": self._counted(read, self.remapped, self.remaps),
            "row_remap_failed": np.zeros(size),
            "power_limit_enforced_w": cap.astype(np.float64),
        }
        for name, events in self.errors.items():
            columns[name] = self._counted(read, self.none, events)
        _spoil(columns, rng, size)
        return columns

    def _memory(self, read: Readings) -> Ints:
        """Return the memory in use: a share of it all by the job, and what grew since it began."""
        is_used = (read.life >= 0) & (read.state != STATE["empty"])
        used = np.where(is_used, 0.55 + 0.36 * self.activity.level[read.life], 0.006)
        since = read.at - self.activity.begin[read.life]
        grown = np.where(is_used, self.activity.growth[read.life] * since, 0.0)
        found: Ints = (self.memory_bytes[read.unit] * used + grown).astype(np.int64) >> 20 << 20
        return found

    def _share_power(self, power: Floats, read: Readings) -> None:
        """Give each MIG instance its GPU's power: device readings repeat on every instance."""
        whole = power.reshape(-1, read.rounds)
        first = 0
        parts = np.flatnonzero(self.is_part)
        while first < len(parts):
            gpu = self.fleet.unit_gpu[parts[first]]
            mine = parts[self.fleet.unit_gpu[parts] == gpu]
            share = self.fleet.unit_slices[mine][:, None] / SLICES
            whole[mine] = np.rint(78 + ((whole[mine] - 78) * share).sum(axis=0))
            first += len(mine)

    def _counted(self, read: Readings, before: Ints, events: list[tuple[int, int, int]]) -> Floats:
        """Return an error counter: what each GPU had before, and (GPU, ms, how many) since."""
        total = before[self.fleet.unit_gpu[read.unit]]
        by_unit, at = total.reshape(-1, read.rounds), read.at.reshape(-1, read.rounds)
        for gpu, since, count in events:
            units = np.flatnonzero(self.fleet.unit_gpu == gpu)
            by_unit[units] += np.where(at[units] >= since, count, 0)
        return total.astype(np.float64)

    def _energy(self, power: Floats, read: Readings) -> Floats:
        """Return the counters, which reset when a node boots."""
        per_round = power.reshape(-1, read.rounds) * (self.scrapes.interval_ms / SECOND)
        gpu = self.fleet.unit_gpu
        run = np.cumsum(per_round, axis=1)
        total = self.energy_j[gpu][:, None] + run
        at = read.at.reshape(-1, read.rounds)
        for node, boot in self.boots:
            units = np.arange(self.fleet.first_unit[node], self.fleet.first_unit[node + 1])
            if at[units[0], 0] <= boot <= at[units[0], -1]:
                after = int(np.searchsorted(at[units[0]], boot))
                total[units, after:] -= total[units, after - 1 : after]
        self.energy_j[gpu] = total[:, -1]
        return np.rint(total).ravel()


def _spoil(columns: dict[str, Any], rng: np.random.Generator, size: int) -> None:
    """Put in what real exporters put in: blanks of DCGM and a share beyond the whole."""
    odd = rng.choice(size, max(1, int(size * ODD_SHARE)), replace=False)
    for kind, rows in enumerate(np.array_split(odd, 3)):
        if kind == 0:
            columns["memory_used_bytes"][rows] = BLANK_INT
        elif kind == 1:
            columns["power_w"][rows] = BLANK_FLOAT
        else:
            columns["tensor_active_ratio"][rows] = 42.0


def _write(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(
        path, compression="zstd", compression_level=3, row_group_size=ROWS_PER_GROUP
    )

"""Three known levels of load on a real H100: the GPU page shows what nvidia-smi showed.

Recorded on 2026-11-24 (README.md); `levels.jsonl` is the load's own clock,
`smi.csv.gz` what nvidia-smi printed each second.
"""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from goodput_app.dashboard.data import metrics
from goodput_app.process.store import use_store
from goodput_queries.scope import Scope

LOAD = Path(__file__).with_name("known_load")
SETTLED_MS = 10_000  # clocks and power averages follow the load late
TOLERANCE = 0.05
SMI = {
    "power_w": "power.draw [W]",
    "sm_clock_hz": "clocks.current.sm [MHz]",
    "gpu_temperature_c": "temperature.gpu",
    "memory_used_bytes": "memory.used [MiB]",
}
FACTORS = {"sm_clock_hz": 1e6, "memory_used_bytes": 2**20}
LEVELS = [json.loads(line) for line in (LOAD / "levels.jsonl").read_text().splitlines()]
of_each_level = pytest.mark.parametrize("level", LEVELS, ids=[str(row["level"]) for row in LEVELS])


@pytest.fixture(scope="module")
def store(ledger_of):
    return ledger_of(LOAD / "nvml.jsonl.gz")


@pytest.fixture(scope="module")
def smi():
    """Return what nvidia-smi printed, in base units, with `at_ms`."""
    text = gzip.decompress((LOAD / "smi.csv.gz").read_bytes())
    frame = pl.read_csv(text, infer_schema=False).rename(str.strip)
    printed = {of: pl.col(name).str.strip_chars().cast(pl.Float64) for of, name in SMI.items()}
    at = pl.col("timestamp").str.strip_chars().str.to_datetime("%Y/%m/%d %H:%M:%S%.f")
    return frame.select(
        at.dt.epoch("ms").alias("at_ms"),
        *(value.mul(FACTORS.get(of, 1.0)).alias(of) for of, value in printed.items()),
    )


def shown(store, level):
    """Return the series that the GPU page draws of a level, once it has settled."""
    use_store(store)
    gpu = store.read("select gpu_uuid from marts.gpus").item()
    from_ms, to_ms = round(1000 * level["start"]) + SETTLED_MS, round(1000 * level["end"])
    read = metrics.resolution(to_ms - from_ms, 1)
    return metrics.gpu_series(Scope(from_ms=from_ms, to_ms=to_ms), [gpu], read)


def mean(frame, metric):
    value = frame[metric].mean()
    assert isinstance(value, float)
    return value


@of_each_level
@pytest.mark.parametrize("metric", SMI)
def test_a_level_is_what_nvidia_smi_showed(store, smi, level, metric):
    first, last = 1000 * level["start"] + SETTLED_MS, 1000 * level["end"]
    printed = smi.filter((pl.col("at_ms") >= first) & (pl.col("at_ms") < last))

    assert mean(shown(store, level), metric) == pytest.approx(mean(printed, metric), rel=TOLERANCE)


@of_each_level
def test_sm_activity_is_the_part_of_the_time_that_was_loaded(store, level):
    active = mean(shown(store, level), "sm_active_ratio")

    assert active == pytest.approx(level["level"], abs=0.1)

"""What an empty list of throttle episodes means: no throttling, or no source that reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

SOURCES = "from marts.throttle_sources"


def empty_meaning(sources: pl.DataFrame) -> str:
    """Return the sentence for no episode, by the row of `marts.throttle_sources`."""
    row = sources.row(0, named=True)
    if row["has_reasons"] or row["has_counters"]:
        return "No GPU was throttled."
    if not row["has_readings"]:
        return "Throttling is not known: no reading of these GPUs in this time range."
    return (
        "Throttling is not known: these readings carry neither clock event reasons nor throttle "
        "counters. Add DCGM_FI_DEV_CLOCKS_EVENT_REASONS (or DCGM_FI_DEV_POWER_VIOLATION and "
        "DCGM_FI_DEV_THERMAL_VIOLATION) to the counters file of dcgm-exporter, or collect by NVML."
    )

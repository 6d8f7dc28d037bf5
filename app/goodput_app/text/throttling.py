"""What an empty list of throttle episodes means: no throttling, or no source that reports it."""

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


def recurrence(found: pl.DataFrame) -> str:
    """Return whether throttling of a GPU is chronic, in a sentence. `found`: marts.throttled_gpus.

    Empty where no hour of the roll-up has a reason.
    """
    if found.is_empty():
        return ""
    rows = found.to_dicts()
    reasons = "; ".join(
        f"{row['reason']} {row['recurrence'] or 'in too few hours to call it chronic or passing'} "
        f"({row['throttled_hours']:,} of {row['read_hours']:,} h read)"
        for row in rows
    )
    margin = rows[0]["slowdown_margin_c"]
    known = "unknown" if margin is None else f"{margin:,.0f} °C"
    return f"{reasons}. Margin to the slowdown temperature: {known}."

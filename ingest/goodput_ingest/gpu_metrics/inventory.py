"""The GPUs that series name, where they stand, and how many processes they had."""

from typing import Final

import polars as pl

from goodput_ingest.gpu_metrics.memory import Memory

KEYS: Final = ["gpu_uuid", "gpu_instance"]
NUMBERS: Final = ("gpu_index", "slurm_index")
FROM_LABELS: Final = (*NUMBERS, "pci_bus_id", "gpu_model", "driver_version", "vbios_version")
PARTS: Final = ("memory_free_bytes", "memory_reserved_bytes")  # with what is used, all of a memory
SUM: Final = "memory_parts_bytes"
FROM_VALUES: Final = {  # metric of raw.gpu_samples_other, column of raw.gpus; a later one wins
    SUM: "memory_bytes",
    "memory_total_bytes": "memory_bytes",
    "power_limit_w": "power_limit_w",
    "power_limit_enforced_w": "power_limit_w",
    "sm_clock_max_hz": "sm_clock_max_hz",
    "slowdown_temperature_c": "slowdown_temperature_c",
}
PROCESSES: Final = "processes"
PROCESSES_MAX: Final = 4_194_304  # pids that Linux has at most
METRICS: Final = (*FROM_VALUES, *PARTS, PROCESSES)


def gpus(
    seen: pl.DataFrame,
    label_sets: pl.DataFrame,
    facts: pl.DataFrame,
    wide: pl.DataFrame,
    cluster: str | None,
    memory: Memory,
) -> pl.DataFrame:
    """Return rows of raw.gpus for GPUs that are new or have changed since the last row.

    A GPU is there from its first reading. Without a node it is in no inventory.
    """
    first = seen.group_by("labels", "gpu_uuid").agg(pl.col("ts").min())
    labels = label_sets.select("node", *FROM_LABELS)[first["labels"]]
    found = (
        pl.concat([first.select("gpu_uuid", "ts"), labels], how="horizontal")
        .filter(pl.col("node").is_not_null())
        .group_by("gpu_uuid", "node")
        .agg(
            # AMD numbers partitions as GPUs: the first is the GPU
            *(pl.col(n).min() if n in NUMBERS else pl.col(n).max() for n in FROM_LABELS),
            valid_from_at=pl.col("ts").min(),
        )
        .join(_values(facts, _sizes(facts, wide, memory)), on="gpu_uuid", how="left")
        .sort("valid_from_at", "gpu_uuid")
        .with_columns(cluster=pl.lit(cluster, dtype=pl.String))
    )
    names = [name for name in found.columns if name not in ("gpu_uuid", "valid_from_at")]
    is_changed: list[bool] = []
    for row in found.iter_rows(named=True):
        known = memory.gpus.get(row["gpu_uuid"], {})
        now = {name: row[name] for name in names if row[name] is not None}
        is_changed.append(not now.items() <= known.items())
        memory.gpus[row["gpu_uuid"]] = {**known, **now}
    return found.filter(pl.Series(is_changed, dtype=pl.Boolean))


def processes(facts: pl.DataFrame) -> pl.DataFrame:
    """Return rows of raw.gpu_processes: counts only, since the exporter has no pids."""
    is_count = pl.col("value").is_between(0, PROCESSES_MAX)  # a damaged page may have any number
    counts = facts.filter((pl.col("metric") == PROCESSES) & is_count)
    return counts.select("gpu_uuid", "ts", processes=pl.col("value").cast(pl.Int32))


def _sizes(facts: pl.DataFrame, wide: pl.DataFrame, memory: Memory) -> pl.DataFrame:
    """Return memory sizes that are not known yet: used, free and reserved at one moment.

    Rounding moves the sum by a MiB, so that it is taken once.
    """
    known = [uuid for uuid, now in memory.gpus.items() if "memory_bytes" in now]
    is_new = (pl.col("gpu_instance") == "") & ~pl.col("gpu_uuid").is_in(known)
    parts = facts.filter(is_new & pl.col("metric").is_in(PARTS) & pl.col("value").is_not_null())
    if "memory_used_bytes" not in wide.columns or parts.is_empty():
        return facts.clear()
    used = wide.select(pl.col(KEYS).cast(pl.String), "ts", "memory_used_bytes")
    sizes = (
        parts.group_by(*KEYS, "ts")
        .agg(pl.col("value").sum(), parts=pl.col("metric").n_unique())
        .filter(pl.col("parts") == len(PARTS))
        .join(used.drop_nulls(), on=[*KEYS, "ts"])
        .group_by(KEYS)
        .agg(pl.col("ts").max(), (pl.col("value") + pl.col("memory_used_bytes")).max())
    )
    return sizes.with_columns(metric=pl.lit(SUM))


def _values(facts: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """Return the latest limits of each GPU, a column each."""
    of_gpu = (
        pl.concat([facts, sizes], how="diagonal")
        .filter(
            pl.col("metric").is_in(list(FROM_VALUES))
            & (pl.col("gpu_instance") == "")
            & pl.col("value").is_not_null()
        )
        .sort("ts")
    )
    latest: dict[str, list[pl.Expr]] = {}
    for metric, column in FROM_VALUES.items():
        value = pl.col("value").filter(pl.col("metric") == metric).last()
        latest.setdefault(column, []).insert(0, value)
    return (
        of_gpu.group_by("gpu_uuid")
        .agg(pl.coalesce(values).alias(column) for column, values in latest.items())
        .with_columns(pl.col("memory_bytes").cast(pl.Int64))
    )

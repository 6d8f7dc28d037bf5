"""Which rows of the database a task gets: those of its GPUs, about its hours."""

from collections.abc import Collection
from typing import Final

from goodput_lake.tasks.plan import Part
from goodput_queries.ledger_build.dirty_hours import HOUR_MS

MARGIN_MS: Final = 2 * HOUR_MS  # no stage looks farther beyond its hours
FOREVER_MS: Final = 9_223_372_036_854_775_807


def of_gpus(name: str, columns: Collection[str], part: Part) -> str:
    """Return the select of the rows of a table that concern the GPUs and hours of a part."""
    buckets = f"select gpu_uuid from temp.part_gpus where bucket in ({_listed(part)})"
    conditions = _of_time(columns, part)
    if "gpu_uuid" in columns:
        conditions.append(f"gpu_uuid in ({buckets})")
    elif "series" in columns:
        series = f"select series from state.reading_series where gpu_uuid in ({buckets})"
        conditions.append(f"series in ({series})")
    return _select(name, conditions)


def _listed(part: Part) -> str:
    return ", ".join(map(str, part[0]))


def _of_time(columns: Collection[str], part: Part) -> list[str]:
    _, first, last = part
    from_ms, to_ms = first * HOUR_MS - MARGIN_MS, last * HOUR_MS + MARGIN_MS
    if "hour_ms" in columns:
        return [f"hour_ms >= {from_ms} and hour_ms < {to_ms}"]
    if "start_ms" in columns and "end_ms" in columns:
        return [f"start_ms < {to_ms} and coalesce(end_ms, {FOREVER_MS}) > {from_ms}"]
    return []


def _select(name: str, conditions: list[str]) -> str:
    return f"from {name}" + (f" where {' and '.join(conditions)}" if conditions else "")

"""Values of a recorded line, checked and in base units."""

from typing import Any

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.nvml.columns import (
    COUNTER_MAX,
    DECIMALS,
    GUEST_JIFFIES,
    IDLE_JIFFIES,
    JIFFY_S,
    LINKS,
    RATIO_MAX,
    REMAPPED,
    SHARES,
    SLOW,
    unit,
)

PIDS_MAX = 1000


def value(line: dict[str, Any], name: str, column: str, flags: list[str]) -> float | None:
    """Return a reading in base units; one that cannot be is null, its column one of the flags."""
    value = line.get(name)
    if value is None:
        return None
    scale, low, high = unit(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        flags.append(column)
        return None
    reading = scaled(value, scale) if value < COUNTER_MAX else high * 2
    if not low <= reading <= high:  # NaN fails as well
        flags.append(column)
        return None
    return min(reading, 1.0) if high == RATIO_MAX else reading


def scaled(value: float, scale: float) -> float:
    """Return value * scale, as the decimal that it is: 0.78052, not 0.7805200000000001."""
    return value * scale if scale >= 1 else round(value / round(1 / scale), DECIMALS)


def is_whole_gpm(gpm: dict[str, Any], without: object) -> bool:
    """Say whether no share is missing: a reading of too short a time comes as zeros without one.

    without: names of shares that this GPU never reports; their absence proves nothing.
    """
    never = set(map(str, without)) if isinstance(without, list) else set()
    names = {*SHARES, *(name for name in gpm if name.endswith("_pct"))} - never
    given = [gpm.get(name) for name in names]
    return all(isinstance(share, int | float) and share == share for share in given)  # noqa: PLR0124 -- NaN is not itself


def other_metrics(line: dict[str, Any]) -> list[tuple[str, float]]:
    """Return what else a slow line measures: canonical metric and value."""
    found: list[tuple[str, float]] = []
    for name, metric in SLOW.items():
        value = json_lines.number(line, name, 0, COUNTER_MAX)
        if value is not None:
            found.append((metric, scaled(value, unit(name).scale)))
    remapped = line.get("remapped_rows")
    if isinstance(remapped, list) and len(remapped) == len(REMAPPED):
        for metric, value in zip(REMAPPED, remapped, strict=True):
            if (rows := json_lines.number({metric: value}, metric, 0)) is not None:
                found.append((metric, rows))
    links = line.get("links")
    if isinstance(links, dict):
        for name, metric in LINKS.items():
            per_link = links.get(name)
            if isinstance(per_link, list) and per_link:
                values = [json_lines.number({name: v}, name, 0, COUNTER_MAX) for v in per_link]
                known = [value for value in values if value is not None]
                if len(known) == len(values):  # a sum over some of the links would be too low
                    found.append((metric, sum(known) * unit(name).scale))
    return found


def pids(line: dict[str, Any]) -> list[int] | None:
    """Return the pids that hold a context; None where the line does not say."""
    procs = line.get("procs")
    if procs is None:
        return None
    if not isinstance(procs, list):
        raise FieldError("procs is not a list")
    pids: list[int] = []
    for proc in procs[:PIDS_MAX]:
        first = proc[0] if isinstance(proc, list) and proc else proc
        pid = json_lines.whole({"pid": first}, "pid", 0, 2**32)
        if pid is None:
            raise FieldError("a process has no pid")
        pids.append(pid)
    return pids


def cpu_seconds(jiffies: object) -> tuple[float | None, float | None, float | None]:
    """Return busy, I/O wait and total seconds over all cores since boot."""
    if not isinstance(jiffies, dict):
        return None, None, None
    by_state = {
        state: json_lines.number(jiffies, state, 0, COUNTER_MAX)
        for state in jiffies
        if state not in GUEST_JIFFIES
    }
    known = [value for value in by_state.values() if value is not None]
    if not known or len(known) < len(by_state) or "idle" not in by_state:
        return None, None, None
    total = sum(known)
    idle = sum(by_state.get(state) or 0 for state in IDLE_JIFFIES)
    waits = by_state.get("iowait")
    return (
        scaled(total - idle, JIFFY_S),
        None if waits is None else scaled(waits, JIFFY_S),
        scaled(total, JIFFY_S),
    )

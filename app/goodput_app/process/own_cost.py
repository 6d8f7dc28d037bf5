"""What this process costs: processor time, memory, and the clock of its builds and evaluations."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from goodput_queries.database import LocalStore, Store

_BEGAN_S = time.monotonic()  # of a server: it imports this while it starts
_STATM = Path("/proc/self/statm")  # of Linux; pages, of which the second number is resident


@dataclass(frozen=True)
class OwnCost:
    """Since the process began; None: not known. Processes of people's SQL are not in it."""

    for_s: float
    cpu_s: float
    memory_bytes: int | None
    built_s: float | None
    evaluated_s: float | None


def own_cost(store: Store) -> OwnCost:
    """Return what this process, with a store, has cost until now."""
    local = store if isinstance(store, LocalStore) else None
    return OwnCost(
        for_s=time.monotonic() - _BEGAN_S,
        cpu_s=time.process_time(),
        memory_bytes=_resident_bytes(),
        built_s=None if local is None else local.built_s,
        evaluated_s=None if local is None else local.evaluated_s,
    )


def _resident_bytes() -> int | None:
    try:
        return int(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None

"""Readings of a GPU: their names in a line and the NVML calls for them, as `readings.csv` has them.

A field of nvmlDeviceGetFieldValues comes first where there is one: all fields cost one call. A call
of its own follows; of several the first that this GPU answers is kept. Field numbers are NVML's
own (NVML_FI_DEV_*), which do not change; older versions of pynvml lack some of the names.
"""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from goodput_ingest.sources.nvml.library import text

PROCESSES: Final = "procs"


@dataclass(frozen=True)
class Call:
    """A function asked with the GPU's handle and arguments; `take` picks the named values."""

    function: str
    arguments: tuple[Any, ...] = ()
    take: Callable[[Any], tuple[Any, ...]] = lambda answer: (answer,)


@dataclass(frozen=True)
class Reading:
    """Values that come with one call: their names in a line, and the ways to ask.

    field: number and scope of nvmlDeviceGetFieldValues, for a single value.
    """

    names: tuple[str, ...]
    calls: tuple[Call, ...] = ()
    field: tuple[int, int] | None = None


_WHOLE: Final[dict[str, Callable[[Any], Any]]] = {  # of an answer that is no structure
    "text": text,
    "list": list,
    "first": itemgetter(0),
    "processes": lambda found: [[process.pid, process.usedGpuMemory] for process in found],
}
ROWS: Final = tuple(
    csv.DictReader((files(__package__) / "readings.csv").read_text("utf-8").splitlines())
)
"""A row a reading and way to ask: of (when it is read), name, column (of raw.gpu_samples, or a
metric of raw.gpu_samples_other), field, function, arguments, answer (what is taken of it)."""


def _taken(answers: str) -> Callable[[Any], tuple[Any, ...]]:
    """Return what takes the values out of an answer: all of it, or members of a structure."""
    if answers in _WHOLE:
        return lambda answer: (_WHOLE[answers](answer),)
    if not answers:
        return lambda answer: (answer,)
    return lambda answer: tuple(getattr(answer, name) for name in answers.split())


def _readings(of: str) -> Iterator[Reading]:
    rows = (row for row in ROWS if row["of"] == of)
    for (names, field), ways in groupby(rows, itemgetter("name", "field")):
        calls = tuple(
            Call(way["function"], tuple(map(int, way["arguments"].split())), _taken(way["answer"]))
            for way in ways
            if way["function"]
        )
        number, _, scope = field.partition(":")
        of_field = (int(number), int(scope or 0)) if field else None
        yield Reading(tuple(names.split()), calls, of_field)


FAST: Final = tuple(_readings("fast"))  # every reading
SLOW: Final = tuple(_readings("slow"))  # what changes seldom, and counters
META: Final = tuple(_readings("meta"))  # once, for the meta line
MEMORY: Final = next(reading for reading in FAST if reading.names == ("mem_used",))
GPM: Final = {row["name"]: int(row["field"]) for row in ROWS if row["of"] == "gpm"}
"""Numbers of the metrics of nvmlGpmMetricsGet."""
LINKS: Final = {row["name"]: int(row["field"]) for row in ROWS if row["of"] == "link"}
"""Numbers of nvmlDeviceGetFieldValues for the counters of a link, which is their scope."""

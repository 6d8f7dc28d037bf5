"""Shared parsing of MLPerf training logs: `:::MLLOG {json}` lines and submission folders.

A submission lies as `<org>/results/<system>/<benchmark>/<run>.txt`, its power readings as
`<org>/results/<system>/<benchmark>/power/<run>/<node>.txt`. The readings name neither run nor node,
and their times may be wrong, so the folder joins them to a run.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError

# behind a collector's stamp and a rank label of `srun -l`; the shell's echo of the command that
# prints the line is another
LABEL = rf"^\s*(?:{json_lines.STAMP}\s*)?(?:\d+:\s*)?:::"
MARKED = re.compile(LABEL + r"(?P<mark>MLLOG|SYSJSON)\s+(?P<object>\{.*)$")
IN_HEAD = re.compile(LABEL.encode() + rb"(?:MLLOG|SYSJSON|DLPAL)\s", re.MULTILINE)
POWER_KEYS = (b'"power_reading"', b'"power_measurement_start"', b'"interconnect_power_est"')
EPOCH_MS_MAX = json_lines.EPOCH_S_MAX * 1000


@dataclass(frozen=True)
class Place:
    """Where a file lies in a submission: the folder of its organisation, and which run it is of."""

    org: Path
    system: str
    benchmark: str
    run: str

    @property
    def org_name(self) -> str:
        """The organisation that submitted."""
        return json_lines.printable(self.org.name, 200)

    @property
    def run_id(self) -> str:
        """The run's name within its organisation."""
        return json_lines.printable(f"{self.system}/{self.benchmark}/{self.run}", 1000)

    def node(self, name: str) -> str:
        """Return the name of a node of the run; runs do not say which machine it was."""
        return json_lines.printable(f"{self.org_name}/{self.run_id}/{name}", 1000)


def place_of_log(path: Path) -> Place | None:
    """Return the place of a run's log; None outside the folders of a submission."""
    return _place(path.resolve().with_suffix(""))


def place_of_power(path: Path) -> Place | None:
    """Return the place of the run that a power file belongs to; None outside a submission."""
    run = path.resolve().parent
    return _place(run.parent.parent / run.name) if run.parent.name == "power" else None


def _place(run: Path) -> Place | None:
    if len(run.parents) < 4 or run.parents[2].name != "results":
        return None
    return Place(run.parents[3], run.parents[1].name, run.parents[0].name, run.name)


def is_power(head: bytes) -> bool:
    """Say whether the lines are readings of a power meter and not a run's log."""
    return any(key in head for key in POWER_KEYS)


def marked(line: str) -> tuple[str, dict[str, Any]] | None:
    """Return the mark (MLLOG, SYSJSON) and the object of a line; None for any other line.

    Raises FieldError where the object is cut or none.
    """
    found = MARKED.match(line) if ":::" in line else None
    return None if found is None else (found["mark"], json_lines.record(found["object"]))


def time_ms(event: dict[str, Any]) -> int:
    """Return the event's `time_ms`, milliseconds since 1970 in UTC; raises FieldError."""
    value = json_lines.whole(event, "time_ms", 0, EPOCH_MS_MAX)
    if value is None:
        raise FieldError("time_ms is missing")
    return value

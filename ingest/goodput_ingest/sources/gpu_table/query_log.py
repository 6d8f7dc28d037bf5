"""What `nvidia-smi -q` prints, in text or XML (`-x`), as rows of `nvidia-smi --query-gpu`.

    Timestamp                       : Sat Nov 28 03:58:07 2026
    GPU 00000000:00:06.0
        GPU UUID                    : GPU-b4a3d1e5-...
        Utilization
            GPU                     : 99 %

`query_log.csv` has which of its facts is which column. Those of one column are added up (parts of
the ECC errors), or are bits of a mask (reasons of the clocks).
"""

import csv
import html
import re
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files
from typing import Final

BEGINNING: Final = re.compile(
    r"^=+NVSMI LOG=+\s*$|^<!DOCTYPE nvidia_smi_log\b|^<nvidia_smi_log>", re.MULTILINE
)
FACT: Final = re.compile(r"( *)(\S.*?) *(?: : (.*))?")
GPU: Final = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+)")
TAG: Final = re.compile(r'\s*<(\w+)(?: id="([^"]*)")?[^>]*>(?:(.*)</\1>)?\s*')
END_TAG: Final = re.compile(r"\s*</(\w+)>\s*")
WRITTEN_AT: Final = "%a %b %d %H:%M:%S %Y"
SUMS: Final = "ecc.errors."
UNIT: Final = re.compile(r"(?<=\d)(?: C|x)$")  # of temperatures and link widths; the CSV has none


def _columns() -> dict[str, tuple[str, int]]:
    """Return column and bit (0: none) by where a fact stands, in text and in XML, without case.

    Drivers differ in it: `Gpu` became `GPU`.
    """
    text = (files("goodput_ingest.sources.gpu_table") / "query_log.csv").read_text("utf-8")
    return {
        place.casefold(): (row["column"], int(row["bit"] or 0))
        for row in csv.DictReader(text.splitlines())
        for place in (row["text"], row["xml"])
        if place
    }


COLUMNS: Final = _columns()


def begins(text: str) -> bool:
    """Say whether a line, or the first of some lines that is not blank, begins such a log."""
    return BEGINNING.search(text) is not None


@dataclass
class QueryLog:
    """Reads line by line. A GPU's row is whole with the next GPU, or the end."""

    _every: dict[str, str] = field(default_factory=dict)  # of all GPUs of a log: time, driver
    _row: dict[str, str] = field(default_factory=dict)
    _place: list[tuple[int, str]] = field(default_factory=list)  # indent and name of each heading
    _is_xml: bool = False

    def take(self, line: str) -> dict[str, str] | None:
        """Return the row of the GPU whose facts end before this line, None where none end."""
        if begins(line):
            ended, self._every, self._is_xml = self.end(), {}, line.startswith("<")
            return ended
        return self._take_xml(line) if self._is_xml else self._take_text(line)

    def _take_xml(self, line: str) -> dict[str, str] | None:
        if (ending := END_TAG.fullmatch(line)) is not None:
            if self._place:
                self._place.pop()
            return self.end() if ending[1] == "gpu" else None
        if (tag := TAG.fullmatch(line)) is None:
            return None
        name, address, value = tag.groups()
        if name == "gpu" and value is None:
            return self._begin(address or "")
        if value is None:
            self._place.append((0, name))
        else:
            place = [*(heading for _, heading in self._place), name]
            self._note(" / ".join(place), html.unescape(value).strip())
        return None

    def _take_text(self, line: str) -> dict[str, str] | None:
        if (found := FACT.fullmatch(line)) is None:
            return None
        indent, name = len(found[1]), found[2]
        if (gpu := GPU.fullmatch(name)) is not None and found[3] is None:
            return self._begin(gpu[1])
        while self._place and self._place[-1][0] >= indent:
            self._place.pop()
        self._place.append((indent, name))
        if found[3] is not None:
            self._note(" / ".join(heading for _, heading in self._place), found[3].strip())
        return None

    def end(self) -> dict[str, str] | None:
        """Return the row of the last GPU."""
        ended, self._row, self._place = self._row, {}, []
        return ended or None

    @property
    def state(self) -> str:
        """What the meaning of the next line depends on."""
        return f"{self._every}{self._row}{self._place}"

    def _begin(self, address: str) -> dict[str, str] | None:
        ended = self.end()
        self._row = {**self._every, "pci.bus_id": address}
        return ended

    def _note(self, place: str, value: str) -> None:
        place = place.casefold().replace("throttle", "event")  # before driver 535
        if place == "timestamp":
            self._every["timestamp"] = _iso(value)
        elif place in ("driver version", "driver_version"):
            self._every["driver_version"] = value
        elif self._row and place in COLUMNS:
            column, bit = COLUMNS[place]
            value = UNIT.sub("", value)
            before = self._row.get(column)
            if bit:
                bits = int(before or "0x0", 16) | (bit if value == "Active" else 0)
                self._row[column] = f"{bits:#x}"
            elif before is not None and column.startswith(SUMS):
                parts = [part for part in (before, value) if part.isdecimal()]
                self._row[column] = str(sum(map(int, parts))) if parts else value
            else:
                self._row[column] = value


def _iso(text: str) -> str:
    """Return `Sat Nov 28 03:58:07 2026` as ISO 8601; another text as it is, to be rejected."""
    try:
        return datetime.strptime(text, WRITTEN_AT).isoformat(" ")  # noqa: DTZ007 -- of the node
    except ValueError:
        return text

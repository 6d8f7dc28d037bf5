"""CSV files that a site writes by hand: a header of known names, quoted cells, a record a line."""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from goodput_ingest.formats import delimited
from goodput_ingest.formats.timestamps import instants
from goodput_queries.errors import IngestError

Instant = Callable[[str], datetime | None]  # of a cell, as naive UTC

FORMER_COLUMNS = {  # files that were written for an earlier version
    "usd_per_gpu_h": "price_per_gpu_h",
    "overhead_usd_per_gpu_h": "overhead_cost_per_gpu_h",
    "purchase_usd": "purchase_cost",
    "usd_per_kwh": "price_per_kwh",
    "usd_per_month": "cost_per_month",
}
SHORT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(Z|z|[+-]\d{2}:?\d{2})?)?")


@dataclass(frozen=True)
class SiteCsv:
    """The rows of a file by column name (cells stripped, empty where absent), with their lines."""

    rows: list[tuple[int, dict[str, str]]]
    odd: list[tuple[int, str]]
    text: str


def header_names(head: bytes) -> list[str]:
    """Return the names in the first line, none where it is not CSV."""
    first = head.decode("utf-8", errors="replace").lstrip("\r\n").split("\n", 1)[0]
    try:
        cells = next(csv.reader([first.rstrip("\r")]), [])
    except csv.Error:
        return []
    return _names(cells)


def _names(cells: Iterable[str]) -> list[str]:
    return [FORMER_COLUMNS.get(cell.strip(), cell.strip()) for cell in cells]


def read(path: Path, *, known: Collection[str], required: Collection[str], name: str) -> SiteCsv:
    """Return the file's rows; a header with an unknown name, or without a needed one, raises.

    A row with another number of cells than the header is odd: it is returned apart.
    """
    blocks = list(delimited.blocks(path))
    text = delimited.text_of(blocks).replace("\x00", "")
    reader = csv.reader(io.StringIO(text, newline=""))
    header: list[str] | None = None
    rows: list[tuple[int, dict[str, str]]] = []
    odd = [(reject.line or 0, reject.reason) for block in blocks for reject in block.rejects]
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells) or cells[0].startswith("#"):
                continue
            if header is None:
                header = _names(cells)
                _check(header, known, required, f"{path}: {name}")
            elif len(cells) == len(header):
                stripped = [cell.strip() for cell in cells]
                rows.append((reader.line_num, dict(zip(header, stripped, strict=True))))
            else:
                odd.append((reader.line_num, ",".join(cells)))
    except csv.Error as error:
        raise IngestError(f"{path}: {name}: line {reader.line_num} is not CSV: {error}.") from error
    if header is None:
        raise IngestError(f"{path}: {name}: the file is empty, expected a header line.")
    return SiteCsv(rows, odd, text)


def _check(
    header: list[str], known: Collection[str], required: Collection[str], where: str
) -> None:
    unknown = [name for name in header if name not in known]
    missing = [name for name in required if name not in header]
    if unknown or missing or len(set(header)) != len(header):
        fault = (
            f"column {unknown[0][:40]!r} is not known"
            if unknown
            else f"column {missing[0]!r} is missing"
            if missing
            else "a column appears twice"
        )
        raise IngestError(f"{where}: {fault}; the columns are {', '.join(known)}.")


def clock(texts: Iterable[str], zone: ZoneInfo | None) -> Instant:
    """Return what reads any of these cells as naive UTC; they are all parsed at once.

    A time may lack its seconds, a bare date is the start of that day. An empty cell is null; one
    that is no time, or a local one without `zone`, raises ValueError.
    """
    distinct = list(dict.fromkeys(texts))
    written_out = pl.Series("at", [_with_seconds(text) for text in distinct], pl.String)
    moments, problems = instants(written_out, zone, is_local_wrong=True)
    known: dict[str, tuple[datetime | None, str | None]] = dict(
        zip(distinct, zip(moments, problems, strict=True), strict=True)
    )

    def instant(text: str) -> datetime | None:
        moment, problem = known[text]
        if problem is not None:
            raise ValueError(problem)
        return moment

    return instant


def _with_seconds(text: str) -> str:
    """Return a date, or a time without seconds, with hours, minutes and seconds."""
    found = SHORT.fullmatch(text)
    if found is None:
        return text
    date, time, offset = found.groups(default="")
    return f"{date}T{time or '00:00'}:00{offset}"

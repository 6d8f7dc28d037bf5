"""Many lines of NCCL Inspector logs into `FLAT`, whole layouts at once.

Plain records of one kind differ in nothing but values (json_layout.py). What is not of the layouts
that a part begins with, as verbose records, is read line by line (nccl_inspector_records.py).
"""

from typing import Any

import polars as pl

from goodput_ingest.formats.json_text import json_layout
from goodput_ingest.formats.json_text.json_layout import Layout
from goodput_ingest.sources.nccl import inspector_records
from goodput_ingest.sources.nccl.inspector_records import (
    FLAT,
    HEADER,
    KINDS,
    METADATA,
    TRACE,
    names,
)

BYTES_MIN = 2_000_000  # the lines of fewer are sooner read one by one
LAYOUTS_MAX = 4  # as a rule two: collectives and point to point
BYTES_TRIED = 16_000  # in these a line is looked for that has a layout
PATHS: dict[json_layout.Path, str] = {  # what leads to a column of FLAT
    **{("header", name): name for name in HEADER},
    **{("metadata", name): name for name in METADATA},
    **{(f"{kind}_perf", called): name for kind in KINDS for name, called in names(kind).items()},
}
TYPES: dict[json_layout.Path, Any] = {path: FLAT[name] for path, name in PATHS.items()}
OFTEN_THE_SAME = {*HEADER, *METADATA, "operation", "timing_source"} - {"dump_timestamp_us"}
VARIED = {path for path, name in PATHS.items() if name not in OFTEN_THE_SAME}


def flat(data: bytes, first_line: int) -> pl.DataFrame:
    """Return one row of FLAT a line that is not blank, in their order; each line has its end."""
    found: list[pl.DataFrame] = []
    numbers: pl.Series | None = None
    while len(found) < LAYOUTS_MAX and len(data) >= BYTES_MIN and (layout := _layout(data)):
        rows, is_read = _read(data, layout)
        if numbers is None:
            numbers = pl.int_range(first_line, first_line + len(rows), dtype=pl.Int64, eager=True)
        rows = rows.with_columns(line=numbers).select(*FLAT)
        if is_read.all():
            found.append(rows)
            data = b""
            break
        found.append(rows.filter(is_read))
        numbers = numbers.filter(~is_read)
        lines = data.split(b"\n")
        data = b"".join(lines[i] + b"\n" for i in (~is_read).arg_true())
    if data or not found:
        lines = data.split(b"\n")[:-1]
        at = range(first_line, first_line + len(lines)) if numbers is None else numbers.to_list()
        found.append(inspector_records.read(lines, at))
    return found[0] if len(found) == 1 else pl.concat(found).sort("line")


def _layout(data: bytes) -> Layout | None:
    """Return the layout of one of the first lines with a single operation and no trace."""
    for line in data[:BYTES_TRIED].split(b"\n")[:-1]:
        if (layout := json_layout.layout_of(line, PATHS)) and _kind(layout):
            return layout
    return None


def _kind(layout: Layout) -> str | None:
    paths = [piece.path for piece in layout]
    kinds = [kind for kind in KINDS if any(path[0] == f"{kind}_perf" for path in paths)]
    return kinds[0] if len(kinds) == 1 and not any(TRACE in path for path in paths) else None


def _read(data: bytes, layout: Layout) -> tuple[pl.DataFrame, pl.Series]:
    """Return a row a line, of FLAT less line, and whether the line is of the layout."""
    columns, is_read = json_layout.read(data, layout, TYPES, VARIED)
    known = {PATHS[path]: column for path, column in columns.items()}
    missing = {name: pl.lit(None, kind) for name, kind in FLAT.items() if name not in known}
    missing["is_p2p"] = pl.lit(_kind(layout) == "p2p")
    return pl.DataFrame(known).with_columns(**missing), is_read

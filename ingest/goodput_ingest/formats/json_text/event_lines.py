"""Reads files of JSON lines into `raw.job_events`, part by part; broken lines become rejects."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl

from goodput_ingest.formats import files, raw_tables
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_queries.evidence.batch import Batch, Reject

DURATION_MAX_S = 31 * 86_400  # nothing inside a job takes longer; milliseconds as seconds do
INT32_MAX = 2**31 - 1
MSG_MAX_CHARS = 2000
EXTRA_MAX_CHARS = 8000
SCHEMA = raw_tables.columns("job_events")
LINE = "line"  # the line of the part that a row comes from, from 0
Row = tuple[Any, ...]  # in the order of SCHEMA


def row(**fields: Any) -> Row:
    """Return a row of these columns; the others are null."""
    return tuple(fields.get(name) for name in SCHEMA)


def batch(
    part: files.Part,
    path: Path,
    source: str,
    rows_of: Callable[[dict[str, Any]], Iterable[Row | FieldError]],
    *meaning: object,
    bulk: Callable[[files.Part], pl.DataFrame] | None = None,
) -> Batch:
    """Return the job events of some lines; `rows_of` turns the object on a line into rows.

    It raises FieldError for a broken line and yields one for a broken item among several of a line.
    `meaning` is what else decides what lines mean: the digest of the part before this one, too,
    where something is kept from line to line. `bulk` returns the same rows of many lines at once,
    and LINE, for the lines that it can.
    """
    parsed = bulk(part) if bulk else None
    frame, rejects = _one_by_one(part, rows_of, parsed)
    rejects += part.cut
    return Batch("job_events", frame, source, str(path), files.digest(part, *meaning), rejects)


def _one_by_one(
    part: files.Part,
    rows_of: Callable[[dict[str, Any]], Iterable[Row | FieldError]],
    parsed: pl.DataFrame | None,
) -> tuple[pl.DataFrame, list[Reject]]:
    """Return the rows of a part in the order of its lines; parses the lines not in `parsed`."""
    known = set() if parsed is None else set(parsed[LINE])
    rows: list[Row] = []
    at: list[int] = []
    rejects: list[Reject] = []
    for number in range(len(part.raw_lines)):
        if number in known or json_lines.is_blank(line := part.line(number)):
            continue
        try:
            for item in rows_of(json_lines.record(line)):
                if isinstance(item, FieldError):
                    rejects.append(_reject(part.first_line + number, item, line))
                else:
                    rows.append(item)
                    at.append(number)
        except FieldError as error:
            rejects.append(_reject(part.first_line + number, error, line))
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    if parsed is None:
        return frame, rejects
    read = frame.with_columns(pl.Series(LINE, at, pl.Int64))
    return pl.concat([parsed, read]).sort(LINE, maintain_order=True).drop(LINE), rejects


def _reject(number: int, error: FieldError, line: str) -> Reject:
    return Reject(number, str(error), json_lines.printable(line, 500))

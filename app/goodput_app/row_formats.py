"""Rows as JSON, CSV and Parquet, for files, pipes and the API."""

import io
import json
import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import polars as pl

from goodput_billing.render.safe_text import DIRECTION, harmless

# what JSON may hold as it is, and a terminal obeys: C1 controls, directions, ends of lines
UNPRINTABLE = re.compile(f"[\x7f-\x9f\u2028\u2029{DIRECTION}]")


def as_json(frame: pl.DataFrame) -> str:
    """Return a list of rows, one a line: integers as integers, moments as ISO 8601 with Z."""
    rows = [
        UNPRINTABLE.sub(_escaped, json.dumps(plain(row), ensure_ascii=False))
        for row in frame.iter_rows(named=True)
    ]
    return "[\n" + ",\n".join(rows) + "\n]\n" if rows else "[]\n"


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def as_csv(frame: pl.DataFrame) -> bytes:
    """Return rows with a header; a spreadsheet takes none of their texts for a formula."""
    cells = flat(frame).with_columns(harmless(pl.selectors.string()))
    return cells.write_csv(datetime_format="%Y-%m-%dT%H:%M:%S%.fZ").encode()


def as_parquet(frame: pl.DataFrame) -> bytes:
    """Return rows as a Parquet file."""
    stream = io.BytesIO()
    frame.write_parquet(stream)
    return stream.getvalue()


def utc(moment: datetime) -> datetime:
    """Return a moment as naive UTC, which is what the database holds."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def plain(value: object) -> object:
    """Return a value as JSON has it; what is no number (NaN, infinity) is null."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, Decimal)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, datetime):
        return f"{utc(value).isoformat()}Z"
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, pl.Series)):
        return [plain(inner) for inner in value]
    return value.hex() if isinstance(value, bytes) else str(value)


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with lists and structs as JSON text: a CSV cell holds one value."""
    return frame.with_columns(
        pl.Series(
            name,
            [None if v is None else json.dumps(plain(v)) for v in frame.get_column(name).to_list()],
        )
        for name, kind in frame.schema.items()
        if kind.is_nested() or isinstance(kind, pl.Binary)
    )

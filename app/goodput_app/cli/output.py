"""Frames as a terminal, a script or a spreadsheet wants them: table, JSON, CSV, Parquet."""

import io
import json
import math
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from goodput_app.cli.fitting import fitting
from goodput_app.row_formats import as_csv, as_json, as_parquet, flat, plain, utc
from goodput_app.settings import settings
from goodput_billing.statement.amounts.currency import decimals
from goodput_messages.printable import printable
from goodput_queries.errors import QueryError, stated
from goodput_queries.storage.private import for_others

FORMATS = ("table", "json", "csv", "parquet")
TABLE_ROWS = 50
CELL_MAX_CHARS = 80
PIPE_WIDTH = 4096  # a pipe has no edge to wrap at
UNKNOWN = "-"
ADVICE = frozenset({"found", "next"})  # what is wrong and what to type: shown whole


def format_of(out: Path | None) -> str:
    """Return the format that the name of a file asks for; a table where it asks for none.

    Raises QueryError where it asks for one that is not written here.
    """
    suffix = "" if out is None else out.suffix.lower().removeprefix(".")
    if suffix in FORMATS:
        return suffix
    if suffix in {"", "txt"}:
        return "table"
    raise QueryError(f"{out}: .{suffix} is none of {', '.join(FORMATS)}; say --format.")


def write(frame: pl.DataFrame, form: str, out: Path | None = None) -> None:
    """Write a frame to standard output, or to `out`, as one of FORMATS.

    Raises QueryError for Parquet to a terminal and for a file that cannot be written.
    """
    if form == "parquet" and out is None and sys.stdout.isatty():
        raise QueryError("Parquet is not for a terminal; name a file with --out.")
    if form == "table" and out is None and sys.stdout.isatty():
        _print_fitting(frame, Console(file=sys.stdout))
        return
    if form == "csv" and out is None and sys.stdout.isatty():
        texts = pl.selectors.string()
        frame = flat(frame).with_columns(texts.map_elements(printable, return_dtype=pl.String))
    data = encoded(frame, form)
    if out is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with stated(QueryError, f"{out}: cannot be written"), for_others():
        out.write_bytes(data)


def encoded(frame: pl.DataFrame, form: str) -> bytes:
    """Return a frame as the bytes of one of FORMATS."""
    if form == "json":
        return as_json(frame).encode()
    if form == "csv":
        return as_csv(frame)
    if form == "parquet":
        return as_parquet(frame)
    text = io.StringIO()
    Console(file=text, width=PIPE_WIDTH, color_system=None).print(_table(frame))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines()).encode()


def _print_fitting(frame: pl.DataFrame, console: Console) -> None:
    """Print what the terminal has room for, and name what it has not."""
    if not ADVICE.isdisjoint(frame.columns):  # texts that are folded
        console.print(_table(frame))
        return
    natural = {
        name: max(len(name), *(len(cell(name, value)) for value in frame[name]), 0)
        for name in frame.columns
    }
    texts = frozenset(name for name, kind in frame.schema.items() if _is_text(kind))
    widths = fitting(natural, texts, console.width)
    if len(widths) < frame.width:
        filled = {
            name: natural[name]
            for name in frame.columns
            if any(cell(name, value) not in {UNKNOWN, ""} for value in frame[name])
        }
        widths = fitting(filled or natural, texts, console.width)
    console.print(_table(frame.select(list(widths)), widths))
    if left_out := frame.width - len(widths):
        console.print(
            f"{left_out} of {frame.width} columns left out (empty, or no room); all: --format csv",
            style="dim",
        )


def _table(frame: pl.DataFrame, widths: Mapping[str, int] | None = None) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, kind in frame.schema.items():
        table.add_column(
            Text(printable(name)),
            justify="right" if kind.is_numeric() else "left",
            overflow="ellipsis" if _is_text(kind) and name not in ADVICE else "fold",
            no_wrap=name not in ADVICE,
            width=None if widths is None else widths[name],
        )
    for row in frame.iter_rows():
        cells = zip(frame.columns, row, strict=True)
        table.add_row(*(Text(cell(name, value)) for name, value in cells))
    return table


def _is_text(kind: pl.DataType) -> bool:
    return isinstance(kind, (pl.String, pl.List, pl.Struct))


def cell(column: str, value: object) -> str:
    """Return how a value of a column reads: 12,345, 87.3 %, 1,234.56, 2026-11-20 14:03:11Z."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float, Decimal)):
        return _number(column, value)
    if isinstance(value, datetime):
        return f"{utc(value).isoformat(sep=' ')[:23]}Z"
    text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    if column in ADVICE:
        return "\n".join(map(printable, text.splitlines()))
    text = printable(text)
    return text if len(text) <= CELL_MAX_CHARS else text[: CELL_MAX_CHARS - 1] + "…"


def _number(column: str, value: float | Decimal) -> str:
    if column == "share" or column.endswith(("_share", "_ratio")):
        return f"{value * 100:.1f} %"
    if _is_money(column):
        return f"{value:,.{decimals(_currency())}f}"
    if isinstance(value, int):
        return f"{value:,d}" if column not in _NAMES else str(value)
    if column.endswith("_s"):
        return f"{value:,.3f}"
    measured = float(value)
    return f"{measured:,.4g}" if abs(measured) < 1000 else f"{measured:,.0f}"


def with_currency(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with the site's currency next to its columns of money, if it has any."""
    money = [name for name in frame.columns if _is_money(name)]
    if not money or "currency" in frame.columns:
        return frame
    place = frame.columns.index(money[-1]) + 1
    names = frame.columns
    return frame.select(*names[:place], pl.lit(_currency()).alias("currency"), *names[place:])


def _is_money(column: str) -> bool:
    return bool(_MONEY.search(column))


def _currency() -> str:
    return settings().statement.currency


_MONEY = re.compile(r"(^|_)cost$|(^|_)(cost|price)_per_")
_NAMES = frozenset({"job_id", "pid", "rank", "port", "line", "xid", "gpu_index", "slurm_index"})

"""Columns of raw tables as frames have them, from the SQL that creates the tables."""

import re

import polars as pl

from goodput_queries.catalog.models import of_layer

_COLUMN = re.compile(r"^    (\w+) (\w+)(?:\((\d+), (\d+)\))?(\[\])?", re.MULTILINE)
_TYPES = {
    "bigint": pl.Int64(),
    "boolean": pl.Boolean(),
    "double": pl.Float64(),
    "integer": pl.Int32(),
    "json": pl.String(),
    "timestamp": pl.Datetime("us"),
    "tinyint": pl.Int8(),
    "varchar": pl.String(),
}


def columns(table: str, *without: str) -> dict[str, pl.DataType]:
    """Return the columns of `raw.<table>` with their types, in order, `load_sequence` left out.

    without: other columns to leave out; one that the table lacks raises KeyError
    """
    found: dict[str, pl.DataType] = {}
    for name, kind, precision, scale, is_list in _COLUMN.findall(of_layer("raw")[table].sql):
        one = pl.Decimal(int(precision), int(scale)) if precision else _TYPES[kind]
        found[name] = pl.List(one) if is_list else one
    for name in ("load_sequence", *without):
        del found[name]
    return found


def only(table: str, *names: str) -> dict[str, pl.DataType]:
    """Return these columns of `raw.<table>`, in this order."""
    found = columns(table)
    return {name: found[name] for name in names}

"""Parses JSON lines of one layout into columns, without parsing each line.

    {"header":{"id":"0x9af1","rank":2},"coll_perf":{"coll":"AllReduce","coll_sn":5}}

A program writes its keys always in the same order. So what a line has between two commas is a
prefix that all lines share (`{"header":{"id":`), a value, and braces. A CSV reader cuts lines
there, in native code. A line has the layout when every piece has its prefix, its braces and a value
without comma, quote and backslash: then it is JSON of these keys. Every other line is left to
a reader of JSON.
"""

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from goodput_ingest.formats import split_fields

Path = tuple[str, ...]  # the keys that lead to a value

NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
# U+FFFD may stand for bytes that are no text; U+007F is a control character to our readers
TEXT: Final = r'"[^"\\\x00-\x1f\x7f\ufffd]*"'
PIECE: Final = re.compile(
    rf'(.*?":[ ]*)("[^"\\\x00-\x1f]*"|{NUMBER}|true|false|null)([ }}]*)', re.DOTALL
)
TEXT_MAX_CHARS: Final = 255
NOWHERE: Final = -1
SIGNED: Final = (-(2**63), 2**63 - 1)
UNSIGNED: Final = (0, 2**64 - 1)


@dataclass(frozen=True)
class Piece:
    """What stands between two commas: path of the value, what is before and what is behind it."""

    path: Path
    prefix: str
    suffix: str


Layout = tuple[Piece, ...]


class _Object(list[tuple[str, Any]]):
    """An object as its pairs: keys keep their order and repetitions."""


def layout_of(line: bytes, wanted: Collection[Path]) -> Layout | None:
    """Return how a line is laid out; None where it cannot be cut at commas.

    Nor where a path that is wanted leads to an object, or goes on behind a value.
    """
    try:
        text = line.decode()
        leaves = _leaves(json.loads(text, object_pairs_hook=_Object))
    except (ValueError, RecursionError):
        return None
    pieces = text.split(",")
    if len(pieces) != len(leaves) or "\\" in text:
        return None
    found = [_piece(text, *leaf) for text, leaf in zip(pieces, leaves, strict=True)]
    if any(piece is None or _crosses(piece.path, wanted) for piece in found):
        return None
    return tuple(filter(None, found))


def _leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """Return path and value of all that is not an object, in the order of the text.

    Raises ValueError for an object without keys, or with one key twice.
    """
    if not isinstance(value, _Object):
        return [(path, value)]
    if not value or len({key for key, _ in value}) < len(value):
        raise ValueError("no key, or one twice")
    return [leaf for key, below in value for leaf in _leaves(below, (*path, key))]


def _piece(text: str, path: Path, value: object) -> Piece | None:
    """Return what is between two commas, which must be one key's value; None: it is not."""
    match = PIECE.fullmatch(text)
    if match is None or not path or not match[1].rstrip(" ").endswith(f'"{path[-1]}":'):
        return None
    is_value = not isinstance(value, list) and json.loads(match[2]) == value
    return Piece(path, match[1], match[3]) if is_value else None


def _crosses(path: Path, wanted: Collection[Path]) -> bool:
    """Say whether there is an object where a value is wanted, or the other way round."""
    return any(
        path != other and all(a == b for a, b in zip(path, other, strict=False)) for other in wanted
    )


def read(
    data: bytes, layout: Layout, wanted: Mapping[Path, pl.DataType], varied: Collection[Path]
) -> tuple[dict[Path, pl.Series], pl.Series]:
    """Return the wanted values that the layout has, one a line, and whether a line was read.

    A line that is not of the layout, or has a value that is not surely of its type, is not read;
    what the columns have of it means nothing. A long text counts as one of those.

    varied: paths to wanted numbers that hardly repeat; other values are looked at once each
    """
    names = {piece.path: str(number) for number, piece in enumerate(layout)}
    kinds = [
        pl.String() if piece.path in varied else pl.Categorical(pl.Categories.random())
        for piece in layout
    ]
    cut = split_fields.cut(
        data,
        ",",
        dict(zip(names.values(), kinds, strict=True)),
        is_lenient=True,  # bytes that are no text become null
    )
    numbers = [piece for piece in layout if piece.path in varied]
    found = cut.select(
        pl.all_horizontal(
            pl.col(split_fields.MORE).is_null(),
            *(_is_number(names[piece.path], piece, wanted[piece.path]) for piece in numbers),
        )
        .fill_null(value=False)
        .alias("is_read"),
        *(_number(names[piece.path], piece, wanted[piece.path]) for piece in numbers),
    )
    is_read = found["is_read"]
    columns = {piece.path: found[names[piece.path]] for piece in numbers}
    for piece in layout:
        if piece.path not in varied:
            kind = wanted.get(piece.path)
            values, is_good = _looked_up(cut[names[piece.path]], piece, kind)
            is_read = is_read if is_good is None else is_read & is_good
            if kind is not None:
                columns[piece.path] = values
    return columns, is_read


def _number(name: str, piece: Piece, kind: pl.DataType) -> pl.Expr:
    value = pl.col(name).str.strip_prefix(piece.prefix)
    return (value.str.strip_suffix(piece.suffix) if piece.suffix else value).cast(
        kind, strict=False
    )


def _is_number(name: str, piece: Piece, kind: pl.DataType) -> pl.Expr:
    """Say where there is a number of the kind: of a whole one there is one way to write it."""
    text, value = pl.col(name), _number(name, piece, kind)
    if kind.is_integer():
        return text == pl.format("{}{}{}", pl.lit(piece.prefix), value, pl.lit(piece.suffix))
    begin, end = re.escape(piece.prefix), re.escape(piece.suffix)
    return text.str.contains(f"^{begin}{NUMBER}{end}$") & value.is_finite()


def _looked_up(
    column: pl.Series, piece: Piece, kind: pl.DataType | None
) -> tuple[pl.Series, pl.Series | None]:
    """Return the values of a column of few distinct texts, and where they are right; None: all."""
    is_there = column.is_not_null() if column.null_count() else None
    number = column.to_physical().fill_null(0).to_numpy()
    row = np.full(int(number.max(initial=0)) + 1, NOWHERE)
    row[number] = np.arange(len(number))
    used = np.flatnonzero(row != NOWHERE)
    form = re.compile(
        f"{re.escape(piece.prefix)}({TEXT}|{NUMBER}|true|false|null){re.escape(piece.suffix)}"
    )
    texts = column.gather(row[used]).cast(pl.String)
    found = [_value(form.fullmatch(text or ""), kind) for text in texts]
    place = np.zeros(len(row), dtype=np.uint32)
    place[used] = np.arange(len(used), dtype=np.uint32)
    at = pl.Series(place[number])
    values = pl.Series([value for value, _ in found], dtype=kind or pl.Null())
    is_good = pl.Series([is_good for _, is_good in found], dtype=pl.Boolean)
    if not is_good.all():
        is_known = is_good.gather(at)
        is_there = is_known if is_there is None else is_there & is_known
    return values.gather(at), is_there


def _value(match: re.Match[str] | None, kind: pl.DataType | None) -> tuple[Any, bool]:
    """Return the value of a piece, and whether it is surely one of the kind; kind None: any."""
    value = json.loads(match[1]) if match else None
    if match is None or kind is None or value is None:
        return None, match is not None
    if kind == pl.String:
        is_good = isinstance(value, str) and len(value) <= TEXT_MAX_CHARS
    elif kind.is_integer():
        low, high = UNSIGNED if kind.is_unsigned_integer() else SIGNED
        is_good = type(value) is int and low <= value <= high
    else:
        is_good = type(value) in (int, float) and math.isfinite(value)
    return (value, True) if is_good else (None, False)

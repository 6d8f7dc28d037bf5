"""Lines of text cut at one character, by a CSV reader, in native code."""

import re
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

MORE: Final = "more"


def cut(
    data: bytes, separator: str, kinds: Mapping[str, pl.DataType], *, is_lenient: bool
) -> pl.DataFrame:
    """Return a row a line: its first pieces, by name and type, and what is `more`, as text.

    A piece that is empty or is not there is null. `more` is null where nothing is behind them; a
    line that ends with the separator has an empty text there.

    is_lenient: a piece that is not of its type is null instead of an error
    """
    try:
        found = _read(data, separator, kinds, is_lenient=is_lenient, extra_columns="raise")
    except pl.exceptions.PolarsError:
        pass  # some line has more pieces, which is seldom: all are read with one column more
    else:
        return found.with_columns(pl.lit(None, pl.String).alias(MORE))
    found = _read(
        data, separator, {**kinds, MORE: pl.String()},
        is_lenient=is_lenient, extra_columns="ignore", truncate_ragged_lines=True,
    )  # fmt: skip
    end = separator.encode()
    if re.search(re.escape(end) + rb"\r?\n", data) is None:
        return found
    # an empty piece looks like none
    lines = data.split(b"\n")[: found.height]
    ends = pl.Series([line.endswith((end, end + b"\r")) for line in lines], dtype=pl.Boolean)
    return found.with_columns(pl.when(ends).then(pl.lit("")).otherwise(MORE).alias(MORE))


def _read(
    data: bytes, separator: str, kinds: Mapping[str, pl.DataType], *, is_lenient: bool, **more: Any
) -> pl.DataFrame:
    return pl.read_csv(
        data,
        separator=separator,
        quote_char=None,
        has_header=False,
        schema=dict(kinds),
        missing_columns="insert",
        encoding="utf8-lossy",
        raise_if_empty=False,
        ignore_errors=is_lenient,
        **more,
    )

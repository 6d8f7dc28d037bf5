"""Lines of the text format that are parsed one by one, and the labels of a series."""

import re
from collections.abc import Container
from typing import Final
from urllib.parse import urlsplit

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.split_fields import cut
from goodput_queries.evidence.batch import REJECT_CONTENT_MAX_CHARS

NEWLINE: Final = ord("\n")
LABEL: Final = re.compile(
    r'\s*(?:([a-zA-Z_][a-zA-Z0-9_.:]*)|"((?:[^"\\]|\\.)*)")\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)'
)
ESCAPE: Final = re.compile(r'\\([\\"n])')
CUT: Final = re.compile(r'\s*([^\s{"#]*)\s*\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\}(\s*\S.*)', re.DOTALL)
WITHOUT_LABELS: Final = re.compile(r'\s*([^\s{}"#]+)(\s.*)', re.DOTALL)
EXEMPLAR: Final = re.compile(r"\s#\s.*", re.DOTALL)
VALUE_AND_TIME: Final = r"^(\S+)\s+(\S+)$"
SECONDS_BELOW: Final = 1e11  # OpenMetrics writes seconds, 0.0.4 ms; 1e11 ms is in 1973
US_MAX: Final = json_lines.EPOCH_S_MAX * 1_000_000
_NONE_READ: Final = pl.DataFrame(
    schema={
        "row": pl.Int64, "head": pl.String, "value": pl.Float64, "us": pl.Int64,
        "reason": pl.String,
    }
)  # fmt: skip
NO_SAMPLE: Final = "the line is not a sample; expected name{labels} value"


def columns(
    data: bytes, head: pl.DataType, tail: pl.DataType, *, is_lenient: bool = False
) -> pl.DataFrame:
    """Return a row a line: head (before the first brace that closes), tail (to the second), more.

    is_lenient: a tail that is not of its type is null instead of an error
    """
    return cut(data, "}", {"head": head, "tail": tail}, is_lenient=is_lenient)


def read(data: bytes, rows: NDArray[np.int64]) -> pl.DataFrame:
    """Return row, head, value, us (time in the text, or null) and reason of odd lines.

    Lines without text and comments are left out; head is null and reason says why where a line is
    no sample, reason says so where its value or time is none.
    """
    if not len(rows):
        return _NONE_READ
    kinds = {"row": pl.Int64, "head": pl.String, "tail": pl.String, "more": pl.String}
    lines = columns(data, pl.String(), pl.String()).with_row_index("row")[rows]
    lines = lines.cast({"row": pl.Int64})
    is_cut = pl.col("head").is_not_null() & pl.col("tail").is_not_null() & pl.col("more").is_null()
    # a comment may have a blank before it
    is_comment = pl.col("head").str.contains(r"^\s*#").fill_null(value=False)
    cut = lines.filter(is_cut & ~is_comment)
    rest = lines.filter(~is_cut & ~is_comment)
    split_again: list[tuple[int, str | None, str | None, None]] = []
    for row, line in zip(rest["row"], lines_at(data, rest["row"].to_numpy()), strict=True):
        text = line.decode("utf-8", "replace")
        if text.strip():
            split_again.append((row, *_cut(text), None))
    return _read_tails(pl.concat([cut, pl.DataFrame(split_again, schema=kinds, orient="row")]))


def lines_at(data: bytes, rows: NDArray[np.int64]) -> list[bytes]:
    """Return some lines of a text, by their number from 0, less their ends."""
    if not len(rows):
        return []
    ends = np.append(np.flatnonzero(np.frombuffer(data, np.uint8) == NEWLINE), len(data))
    starts = np.append(0, ends[:-1] + 1)
    return [data[start:end] for start, end in zip(starts[rows], ends[rows], strict=True)]


def labels_of(text: str, keep: Container[str]) -> tuple[dict[str, str], str | None]:
    """Return the labels to keep that have a value, names in lower case; or what is wrong."""
    labels: dict[str, str] = {}
    at = 0
    while at < len(text) and not text[at:].isspace():
        match = LABEL.match(text, at)
        if match is None:
            return {}, f"the labels cannot be read from character {at + 1} on"
        at = match.end()
        plain, quoted, value = match.groups()
        name = (plain or quoted).lower().replace(".", "_")  # as Prometheus 2 spells them
        if name in keep and value:
            labels.setdefault(name, ESCAPE.sub(_unescaped, value) if "\\" in value else value)
    return labels, None


def label_columns(sets: list[dict[str, str]], targets: pl.Series) -> pl.DataFrame:
    """Return a column a label; who was asked is `instance`, as Prometheus would have it."""
    for labels, target in zip(sets, targets, strict=True):
        if target is not None and (host := _host(target)):
            labels.setdefault("instance", host)
    names = list(dict.fromkeys(name for labels in sets for name in labels))
    found = {n: pl.Series([labels.get(n) for labels in sets], dtype=pl.String) for n in names}
    return pl.DataFrame(found) if found else pl.DataFrame(height=len(sets))


def shown(text: bytes) -> str:
    """Return a line as a reject shows it."""
    return json_lines.printable(
        text[: 4 * REJECT_CONTENT_MAX_CHARS].decode("utf-8", "replace"), REJECT_CONTENT_MAX_CHARS
    )


def _cut(text: str) -> tuple[str | None, str | None]:
    """Return what stands before and after the brace that ends the labels; two nulls: no sample."""
    if match := CUT.fullmatch(text):
        name, labels, tail = match.groups()
        return f"{name}{{{labels}", EXEMPLAR.sub("", tail)
    if match := WITHOUT_LABELS.fullmatch(text):
        return f"{match[1]}{{", EXEMPLAR.sub("", match[2])
    return None, None


def _read_tails(lines: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("tail").str.strip_chars()
    fields = text.str.extract_groups(VALUE_AND_TIME).struct
    time = fields[1].cast(pl.Float64, strict=False)
    us = pl.when(time < SECONDS_BELOW).then(time * 1e6).otherwise(time * 1e3).round()
    value = pl.coalesce(fields[0], text).cast(pl.Float64, strict=False)
    is_time_wrong = fields[1].is_not_null() & ~us.is_between(0, US_MAX).fill_null(value=False)
    return lines.select(
        "row",
        "head",
        value=value,
        us=pl.when(~is_time_wrong).then(us).cast(pl.Int64),
        reason=pl.when(pl.col("head").is_null())
        .then(pl.lit(NO_SAMPLE))
        .when(value.is_null())
        .then(pl.lit("the value is not a number"))
        .when(is_time_wrong)
        .then(pl.lit("the time is not a valid timestamp")),
    )


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _host(target: str) -> str:
    try:
        return urlsplit(target).netloc.rpartition("@")[2]
    except ValueError:
        return ""

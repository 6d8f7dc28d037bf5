"""Vectorised parser of job events: the lines that programs of our own schema usually write.

It parses a line only where the result surely equals the line-by-line parser's; that one parses all
other lines, and reports errors.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

import polars as pl

from goodput_ingest.formats.files import Part, with_ends
from goodput_ingest.formats.json_text.event_lines import DURATION_MAX_S, LINE, SCHEMA
from goodput_ingest.formats.json_text.json_lines import EPOCH_S_MAX
from goodput_ingest.sources.job_events import fields

BLOCK_LINES: Final = 1_024  # a line that is no JSON spoils the block it stands in
ODD: Final = (  # with one of these a line is left to the other reader
    *(b"\\", b"\x7f", b"[", b"NaN", b"Infinity"),  # escapes, lists, what only Python reads
    *(b" :", b"\t:", b"\r:"),  # else a field's name is followed by its colon
)


def events_of(
    part: Part, needs: Mapping[str, Sequence[str]], source: str, cluster: str | None
) -> pl.DataFrame:
    """Return the events of plain lines as rows of SCHEMA, and LINE: which of the part's, from 0.

    needs: the known events, with the required fields of each.
    """
    rows = _parsed(part).filter(_is_plain(needs))
    said = {
        "source": pl.lit(source),
        "cluster": pl.lit(cluster, pl.String),
        "run_id": pl.col("run_id").fill_null(""),
        "ts": (pl.col("ts") * 1e6).round(mode="half_to_even").cast(pl.Int64),
        "reports_durability": pl.lit(value=True),
        "extra": pl.lit(None),
    }
    for name, most in fields.TEXTS.items():
        said[name] = said.get(name, pl.col(name)).str.slice(0, most)
    columns = [said.get(n, pl.col(n)).cast(kind).alias(n) for n, kind in SCHEMA.items()]
    return rows.select(*columns, LINE)


def _parsed(part: Part) -> pl.DataFrame:
    """Return the fields of the lines that are JSON, which line it is, and its quotes and colons.

    Where a line is none, those of its block are left out; where a value has another type, too.
    """
    lines, flat = part.raw_lines, _flat(part)
    if (whole := _fields(lines, flat)) is not None:
        return whole
    blocks = (flat[at : at + BLOCK_LINES] for at in range(0, len(flat), BLOCK_LINES))
    found = [fields for block in blocks if (fields := _fields(lines, block)) is not None]
    return pl.concat(found) if found else _none()


def _flat(part: Part) -> Sequence[int]:
    """Return which lines begin an object and seem to hold no other, no list and no escapes."""
    lines, data = part.raw_lines, part.data
    begun = sum(line[:1] == b"{" for line in lines)
    odd = set[int]()
    if not begun == len(lines) == data.count(b"{"):
        odd |= {n for n, line in enumerate(lines) if line[:1] != b"{" or line.count(b"{") > 1}
    for sign in ODD:
        odd |= _lines_with(sign, data, lines)
    return [n for n in range(len(lines)) if n not in odd] if odd else range(len(lines))


def _lines_with(sign: bytes, data: bytes, lines: Sequence[bytes]) -> set[int]:
    """Return which lines hold it; `data` is all of them, and searching it is much faster."""
    found = set[int]()
    if (at := data.find(sign)) < 0:
        return found
    ends = list(accumulate(len(line) + 1 for line in lines))
    while at >= 0:
        number = bisect_right(ends, at)
        found.add(number)
        at = data.find(sign, ends[number])
    return found


def _fields(lines: Sequence[bytes], numbers: Sequence[int]) -> pl.DataFrame | None:
    if not numbers:
        return _none()
    chosen = lines if len(numbers) == len(lines) else [lines[number] for number in numbers]
    try:
        found = pl.read_ndjson(with_ends(chosen), schema=fields.FIELDS)
    except pl.exceptions.PolarsError:
        return None
    if found.height != len(chosen):
        return None
    return found.with_columns(
        pl.Series(LINE, numbers, pl.Int64),
        pl.Series("quotes", [line.count(b'"') for line in chosen], pl.Int64),
        pl.Series("colons", [line.count(b'":') for line in chosen], pl.Int64),
    )


def _none() -> pl.DataFrame:
    added = dict.fromkeys((LINE, "quotes", "colons"), pl.Int64())
    return pl.DataFrame(schema={**fields.FIELDS, **added})


def _is_plain(needs: Mapping[str, Sequence[str]]) -> pl.Expr:
    """Say of each row that its line has these fields, each once, and nothing else.

    Each name is followed by a quote and a colon, and so may be the start of a text: as many colons
    as parsed fields mean that there are no other fields. Quotes, none of them escaped, are two for
    each name and two for each text: that number means that every parsed text is a string.
    """
    fields_count = pl.sum_horizontal(pl.col(name).is_not_null() for name in fields.FIELDS)
    texts = pl.sum_horizontal(pl.col(name).is_not_null() for name in fields.TEXTS)
    events = pl.lit(value=False)
    for event, needed in needs.items():
        events |= pl.all_horizontal(pl.col("event") == event, pl.col(needed).is_not_null())
    return pl.all_horizontal(
        pl.col("colons") == fields_count,
        pl.col("quotes") == 2 * (fields_count + texts),
        pl.col("v") == fields.VERSION,
        (pl.col("ts") >= 0) & (pl.col("ts") < EPOCH_S_MAX),
        events,
        *(_within(name, most) for name, most in fields.WHOLES.items()),
        *(_within(name, DURATION_MAX_S) for name in fields.DURATIONS),
        *(_within(name, None) for name in fields.AMOUNTS),
        pl.col("loss").is_finite().fill_null(value=True),
    )


def _within(name: str, most: int | None) -> pl.Expr:
    value = pl.col(name)
    inside = value >= 0 if most is None else value.is_between(0, most)
    return inside.fill_null(value=True)

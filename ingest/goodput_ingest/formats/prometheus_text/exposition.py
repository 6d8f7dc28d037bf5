r"""The text format of Prometheus exporters (0.0.4), and OpenMetrics as far as it is the same.

    # HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
    DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-6f0c",Hostname="gpu-a01"} 100
    name{label="value \"quoted\" \\ \n"} value [time]

A line at a time: a bad one costs only itself. TYPE and HELP are not read, since exporters copy them
from files that people edit. A scrape has no time; a line that our recorder writes before it has:

    # scraped_at 2026-11-20T12:00:00.250Z http://gpu-a01:9400/metrics

Almost all lines end their labels with their only `}` and have no time. So a CSV reader cuts them
there, in native code, and what stands before it is taken apart once (`exposition_series`). Lines
that are otherwise (`exposition_lines`) take a slower way.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.formats.prometheus_text import lines as exposition_lines
from goodput_ingest.formats.prometheus_text.series import (
    IS_BAD,
    IS_COMMENT,
    IS_MARK,
    NO_HEAD,
    KnownSeries,
)
from goodput_queries.evidence.batch import Reject

MARK_LINE: Final = r"^# scraped_at (?P<at>\S+)(?:\s+(?P<target>\S+))?\s*$"
USUAL_MOMENT: Final = r"[12]\d{3}-\d\d-\d\dT\d\d:\d\d:[0-5]\d(?:\.\d{1,6})?Z"
INSTANT: Final = pl.Datetime("us")
_NONE_BAD: Final = pl.DataFrame(schema={"row": pl.Int64, "reason": pl.String})


@dataclass(frozen=True)
class Exposition:
    """What some lines of text say.

    points: series (row of `series`), ts (naive UTC; null where the line has no time and no mark
        stands before it), value
    series: metric, labels (row of `label_sets`); of earlier parts of the text too
    label_sets: a column a label name that was asked for, in lower case, null where absent;
        `instance` is who the mark before the series' first line says was asked, unless a label is
    rejects: lines that could not be read
    lines: how many lines there were
    """

    points: pl.DataFrame
    series: pl.DataFrame
    label_sets: pl.DataFrame
    rejects: list[Reject]
    lines: int

    def digest(self, *meaning: object) -> str:
        """Return a digest of what the lines say, with all that decides what it means.

        Not of the bytes, which are ten times as many.
        """
        found = hashlib.sha256()
        for column in self.points.get_columns():
            values = column.to_physical().fill_null(0).to_numpy()
            found.update(np.ascontiguousarray(values).data)  # not copied
        sets = self.label_sets.write_csv() if self.label_sets.width else self.label_sets.height
        return files.digest_of(
            f"{found.hexdigest()} {self.series.write_csv()} {sets} {self.rejects}", *meaning
        )


@dataclass(frozen=True)
class _Marks:
    """Lines of ours: where they stand, the moment (null: cannot be read) and who was asked."""

    row: NDArray[np.int64]
    ts: pl.Series
    target: pl.Series

    def before(self, row: NDArray[np.int64]) -> pl.Series:
        """Return the number of the last mark before each row; null where there is none."""
        number = np.searchsorted(self.row, row) - 1
        return pl.Series(number).set(pl.Series(number < 0), None)

    def moments(self, rows: NDArray[np.int64]) -> pl.Series:
        """Return the moment of the last mark before each of these rows, which rise."""
        ends = np.append(np.searchsorted(rows, self.row), len(rows))
        of_mark = self.ts.to_physical()
        found = pl.Series(np.repeat(of_mark.fill_null(0).to_numpy(), np.diff(ends)))
        undated = np.repeat(of_mark.is_null().to_numpy(), np.diff(ends))
        if undated.any():
            found = found.set(pl.Series(undated), None)
        if ends[0]:
            before = pl.repeat(None, int(ends[0]), dtype=pl.Int64, eager=True)
            found = pl.concat([before, found])
        return found.cast(INSTANT)


@dataclass(frozen=True)
class _Whole:
    """Which lines were cut rightly, and what all lines have.

    rows: of those that were cut rightly
    number: of the beginning, or NO_HEAD
    heads: the beginning, as a category
    value: what comes behind it, as a number
    """

    rows: NDArray[np.int64]
    number: NDArray[np.int64]
    heads: pl.Series
    value: pl.Series


def parse(data: bytes, known: KnownSeries, *, first_line: int = 1) -> Exposition:
    """Return the points of the lines in `data`; bytes that are no UTF-8 are replaced.

    known: the series of parts before this one, which those of this one are added to
    first_line: number of the first line, for rejects
    """
    lines = exposition_lines.columns(
        data, pl.Categorical(known.categories), pl.Float64(), is_lenient=True
    )
    number = lines["head"].to_physical().cast(pl.Int64).fill_null(NO_HEAD).to_numpy()
    kind = known.kinds(lines["head"], number)
    is_comment = kind >= IS_COMMENT
    is_cut = (lines["tail"].is_not_null() & lines["more"].is_null()).to_numpy()
    is_cut &= number != NO_HEAD
    marks = _marks(lines["head"], np.flatnonzero(kind == IS_MARK))
    whole = _Whole(np.flatnonzero(is_cut & ~is_comment), number, lines["head"], lines["tail"])
    odd = exposition_lines.read(data, np.flatnonzero(~is_cut & ~is_comment))
    _learn(whole, odd, marks, known)
    points, bad = _whole_points(whole, marks, known)
    if odd.height:
        odd_points, odd_bad = _odd_points(odd, marks, known)
        points, bad = pl.concat([points, odd_points]), pl.concat([bad, odd_bad])
    return Exposition(
        points=points,
        series=known.series,
        label_sets=known.label_sets,
        rejects=_rejects(bad, data, first_line) if bad.height else [],
        lines=lines.height,
    )


def joined(parts: Sequence[Exposition]) -> Exposition:
    """Return parts of one text that were read with the same known series as one."""
    if len(parts) == 1:
        return parts[0]
    return Exposition(
        points=pl.concat([part.points for part in parts]),
        series=parts[-1].series,
        label_sets=parts[-1].label_sets,
        rejects=[reject for part in parts for reject in part.rejects],
        lines=sum(part.lines for part in parts),
    )


def _marks(heads: pl.Series, rows: NDArray[np.int64]) -> _Marks:
    fields = heads.gather(rows).cast(pl.String).str.extract_groups(MARK_LINE).struct.unnest()
    return _Marks(row=rows, ts=_moments(fields["at"]), target=fields["target"])


def _moments(texts: pl.Series) -> pl.Series:
    """Return the moments that texts say, null where they say none; our own scraper's at once."""
    usual = texts.str.extract(f"^({USUAL_MOMENT})$")
    at = usual.str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", strict=False)
    # the same years as `json_lines.in_utc`
    is_known = at.is_between(json_lines.EPOCH, json_lines.LATEST, closed="left")
    at = pl.select(pl.when(is_known).then(at)).to_series()
    if not at.null_count():
        return at
    others = (at.is_null() & texts.is_not_null()).arg_true()
    return at.scatter(others, [_moment(text) for text in texts.gather(others)])


def _moment(text: str) -> datetime | None:
    try:
        return json_lines.moment({"scraped_at": text}, "scraped_at")
    except FieldError:
        return None


def _learn(whole: _Whole, odd: pl.DataFrame, marks: _Marks, known: KnownSeries) -> None:
    """Make known all series that the lines name."""
    new = known.new_among(whole.number, whole.rows)
    named = [pl.DataFrame({"row": new, "head": whole.heads.gather(new).cast(pl.String)})]
    if odd.height:
        named.append(odd.filter(pl.col("head").is_not_null()).select("row", "head"))
    found = pl.concat(named)
    if found.height:
        target = marks.target.gather(marks.before(found["row"].to_numpy()))
        known.learn(found.with_columns(target=target).sort("row"))
        known.note(whole.number[new], named[0]["head"])


def _whole_points(
    whole: _Whole, marks: _Marks, known: KnownSeries
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return series, ts and value of the lines that were cut rightly; row and reason of bad ones.

    All their series are known.
    """
    rows, bad = whole.rows, _NONE_BAD
    series = known.of_numbers(whole.number[rows])
    is_bad = series == IS_BAD
    if is_bad.any():
        bad_rows = pl.Series("row", rows[is_bad])
        texts = whole.heads.gather(bad_rows).cast(pl.String)
        bad = pl.DataFrame([bad_rows, known.of_texts(texts)["reason"]])
        rows, series = rows[~is_bad], series[~is_bad]
    value = pl.Series(whole.value.to_numpy()[rows])
    return pl.DataFrame({"series": series, "ts": marks.moments(rows), "value": value}), bad


def _odd_points(
    odd: pl.DataFrame, marks: _Marks, known: KnownSeries
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the same of the lines that took the slower way."""
    of_mark = marks.ts.gather(marks.before(odd["row"].to_numpy()))
    named = known.of_texts(odd["head"])
    found = odd.select(
        named["series"],
        pl.col("us").cast(INSTANT).fill_null(of_mark).alias("ts"),
        "value",
        "row",
        pl.coalesce(named["reason"], "reason").alias("reason"),
    )
    is_bad = pl.col("reason").is_not_null()
    return (
        found.filter(~is_bad).select("series", "ts", "value"),
        found.filter(is_bad).select("row", "reason"),
    )


def _rejects(bad: pl.DataFrame, data: bytes, first_line: int) -> list[Reject]:
    bad = bad.sort("row")
    texts = exposition_lines.lines_at(data, bad["row"].to_numpy())
    return [
        Reject(first_line + row, reason, exposition_lines.shown(text))
        for row, reason, text in zip(bad["row"], bad["reason"], texts, strict=True)
    ]

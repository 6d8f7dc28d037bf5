r"""The text format of Prometheus exporters (0.0.4), and OpenMetrics as far as it is the same.

    # HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
    DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-6f0c",Hostname="gpu-a01"} 100
    name{label="value \"quoted\" \\ \n"} value [time]

A line at a time: a bad one costs only itself. TYPE and HELP are not read, since exporters copy them
from files that people edit. A scrape says nothing of its time; a line of ours before it does:

    # scraped_at 2026-11-20T12:00:00.250Z http://gpu-a01:9400/metrics

Almost all lines end their labels with their only `}` and have no time. So a CSV reader cuts them
there, in native code, and what stands before it, which repeats with every scrape, is taken apart
once per distinct text. Lines that are otherwise (`exposition_lines`) take a slower way.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from goodput_ingest import exposition_lines, files, json_lines
from goodput_ingest.exposition_lines import labels_of
from goodput_ingest.json_lines import FieldError
from goodput_ingest.source import Reject

if TYPE_CHECKING:
    from collections.abc import Container
    from datetime import datetime

    from numpy.typing import NDArray

MARK: Final = "# scraped_at "
MARK_LINE: Final = r"^# scraped_at (?P<at>\S+)(?:\s+(?P<target>\S+))?\s*$"
USUAL_MOMENT: Final = r"[12]\d{3}-\d\d-\d\dT\d\d:\d\d:[0-5]\d(?:\.\d{1,6})?Z"
HEAD_MAX_BYTES: Final = (
    16_384  # name and labels; with all labels of its pod a series has some 2,000
)
COMMENT: Final = r"^\s*#"
NAME: Final = r"^[a-zA-Z_:][a-zA-Z0-9_:]*$"
INSTANT: Final = pl.Datetime("us")
NONE: Final = -1


@dataclass(frozen=True)
class Exposition:
    """What some lines of text say.

    points: series (row of `series`), ts (naive UTC; null where the line has no time and no mark
        stands before it), value
    series: metric, labels (row of `label_sets`)
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
            found.update(column.to_physical().fill_null(0).to_numpy().tobytes())
        named = (self.series.write_csv(), self.label_sets.write_csv(), self.rejects, *meaning)
        found.update("\x1f".join(map(str, named)).encode("utf-8", "replace"))
        return found.hexdigest()[: files.DIGEST_CHARS]


@dataclass(frozen=True)
class _Lines:
    """The lines of a text, cut at the first brace that closes.

    head: for each line the row of `heads` it begins with, or NONE
    value: what comes behind, as a number; null where it is none alone
    heads: distinct beginnings; first_row: the line that each is in first
    is_used: heads of samples
    is_sample: lines that are cut rightly; is_odd: lines to look at one by one
    """

    head: NDArray[np.int64]
    value: pl.Series
    heads: pl.Series
    first_row: NDArray[np.int64]
    is_used: NDArray[np.bool_]
    is_sample: NDArray[np.bool_]
    is_odd: NDArray[np.bool_]


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


def parse(data: bytes, keep: Container[str], *, first_line: int = 1) -> Exposition:
    """Return the points of the lines in `data`; bytes that are no UTF-8 are replaced.

    keep: names of labels to return, in lower case
    first_line: number of the first line, for rejects
    """
    lines = _lines(data)
    marks = _marks(lines)
    odd = exposition_lines.read(data, np.flatnonzero(lines.is_odd))
    heads = pl.concat(
        [
            # by row, since several threads number them
            pl.DataFrame({"row": lines.first_row, "head": lines.heads})
            .filter(lines.is_used)
            .sort("row"),
            odd.filter(pl.col("head").is_not_null()).select("row", "head"),
        ]
    ).unique("head", keep="first", maintain_order=True)
    series, label_sets = _series(heads, marks, keep)
    points = pl.concat([_whole_points(lines, series), _odd_points(odd, series)])
    is_bad = points["reason"].is_not_null()
    good = points.filter(~is_bad) if is_bad.any() else points
    ts = good["us"].cast(INSTANT)
    if len(marks.row):
        ts = ts.fill_null(marks.ts.gather(marks.before(good["row"].to_numpy())))
    return Exposition(
        points=good.select("series", ts.alias("ts"), "value"),
        series=series.filter(pl.col("reason").is_null()).select("metric", "labels"),
        label_sets=label_sets,
        rejects=_rejects(points.filter(is_bad), data, first_line) if is_bad.any() else [],
        lines=len(lines.head),
    )


def _lines(data: bytes) -> _Lines:
    columns = exposition_lines.columns(
        data, pl.Categorical(pl.Categories.random()), pl.Float64(), is_lenient=True
    )
    head = columns["head"].to_physical().cast(pl.Int64).fill_null(NONE).to_numpy()
    has_head = head != NONE
    first_row = np.zeros(int(head.max(initial=NONE)) + 1, dtype=np.int64)
    rows = np.flatnonzero(has_head)[::-1]
    first_row[head[rows]] = rows  # written last to first: the first stays
    heads = columns["head"].gather(first_row).cast(pl.String)
    is_comment = has_head.copy()
    is_comment[rows] = heads.str.contains(COMMENT).to_numpy()[head[rows]]
    is_cut = (columns["tail"].is_not_null() & columns["more"].is_null()).to_numpy() & has_head
    is_sample = is_cut & ~is_comment
    is_used = np.zeros(len(heads), dtype=bool)
    is_used[head[is_sample]] = True
    return _Lines(
        head=head,
        value=columns["tail"],
        heads=heads,
        first_row=first_row,
        is_used=is_used,
        is_sample=is_sample,
        is_odd=~is_cut & ~is_comment,
    )


def _marks(lines: _Lines) -> _Marks:
    is_mark = lines.heads.str.starts_with(MARK).to_numpy()
    rows = np.flatnonzero((lines.head != NONE) & np.append(is_mark, False)[lines.head])
    texts = lines.heads.gather(lines.head[rows])
    fields = texts.str.extract_groups(MARK_LINE).struct.unnest()
    return _Marks(row=rows, ts=_moments(fields["at"]), target=fields["target"])


def _moments(texts: pl.Series) -> pl.Series:
    """Return the moments that texts say, null where they say none; our own scraper's at once."""
    usual = texts.str.extract(f"^({USUAL_MOMENT})$")
    at = usual.str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", strict=False)
    others = (at.is_null() & texts.is_not_null()).arg_true()
    return at.scatter(others, [_moment(text) for text in texts.gather(others)])


def _moment(text: str) -> datetime | None:
    try:
        return json_lines.moment({"scraped_at": text}, "scraped_at")
    except FieldError:
        return None


def _series(
    heads: pl.DataFrame, marks: _Marks, keep: Container[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return head, metric, labels and reason of each head, the good ones first; and label sets."""
    pieces = heads.select(
        "head",
        pl.col("head").str.splitn("{", 2).struct.rename_fields(["metric", "text"]).struct.unnest(),
        target=marks.target.gather(marks.before(heads["row"].to_numpy())),
    ).with_columns(pl.col("metric").str.strip_chars(), pl.col("text").fill_null(""))
    sets = pieces.select("text", "target").unique(maintain_order=True).with_row_index("labels")
    read = [labels_of(text[:HEAD_MAX_BYTES], keep) for text in sets["text"]]
    sets = sets.with_columns(reason=pl.Series([reason for _, reason in read], dtype=pl.String))
    series = (
        pieces.join(
            sets, on=["text", "target"], how="left", nulls_equal=True, maintain_order="left"
        )
        .select(
            "head",
            "metric",
            "labels",
            reason=pl.when(pl.col("head").str.len_bytes() > HEAD_MAX_BYTES)
            .then(pl.lit(f"name and labels are longer than {HEAD_MAX_BYTES} bytes"))
            .when(~pl.col("metric").str.contains(NAME))
            .then(pl.lit("the line does not begin with the name of a metric"))
            .otherwise("reason"),
        )
        .sort(pl.col("reason").is_not_null(), maintain_order=True)
    )
    found = [labels for labels, _ in read]
    return series, exposition_lines.label_columns(found, sets["target"])


def _whole_points(lines: _Lines, series: pl.DataFrame) -> pl.DataFrame:
    """Return series, row, value, us and reason of the lines that were cut rightly."""
    known = series.select("head", "reason").with_row_index("series")
    of_head = lines.heads.to_frame("head").join(known, on="head", how="left", maintain_order="left")
    rows = pl.Series(np.flatnonzero(lines.is_sample))
    return of_head.select("series", "reason")[lines.head[lines.is_sample]].select(
        "series",
        "reason",
        rows.alias("row"),
        lines.value.filter(pl.Series(lines.is_sample)).alias("value"),
        pl.lit(None, dtype=pl.Int64).alias("us"),
    )


def _odd_points(odd: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    known = series.select("head", of_series="reason").with_row_index("series")
    return odd.join(known, on="head", how="left", maintain_order="left").select(
        "series", pl.coalesce("of_series", "reason").alias("reason"), "row", "value", "us"
    )


def _rejects(bad: pl.DataFrame, data: bytes, first_line: int) -> list[Reject]:
    bad = bad.sort("row")
    texts = exposition_lines.lines_at(data, bad["row"].to_numpy())
    return [
        Reject(first_line + row, reason, exposition_lines.shown(text))
        for row, reason, text in zip(bad["row"], bad["reason"], texts, strict=True)
    ]

"""The series that the lines of a text are of, remembered from one part of it to the next.

What stands before the value repeats with every scrape. So a CSV reader gives equal beginnings one
number, and each beginning is taken apart once, in however many parts the text comes.
"""

from collections.abc import Container
from typing import Final

import numpy as np
import numpy.ma  # polars asks it of every array: better at the start than in between
import polars as pl
from numpy.typing import NDArray

from goodput_ingest.formats.prometheus_text import lines
from goodput_ingest.formats.prometheus_text.lines import labels_of

MARK: Final = "# scraped_at "
COMMENT: Final = r"^\s*#"
NAME: Final = r"^[a-zA-Z_:][a-zA-Z0-9_:.]*$"
# a name of UTF-8 stands among the labels: {"hw.gpu.utilization","hw.id"="0"}
QUOTED: Final = r'^\s*"(?<name>[^"\\]+)"\s*(?:,|$)(?<rest>.*)$'
HEAD_MAX_BYTES: Final = (
    16_384  # name and labels; with all labels of its pod a series has some 2,000
)
NUMBERS_MAX: Final = 500_000  # of beginnings, some 100 MB of text; marks of scrapes are ever new

NO_HEAD: Final = -1  # number of a line without a beginning
NEW, IS_SERIES, IS_COMMENT, IS_MARK = range(4)  # kinds of beginnings
UNKNOWN, IS_BAD = -1, -2  # instead of a row of `series`


class KnownSeries:
    """Beginnings of lines, by their number, and the series that they name.

    categories: gives beginnings their numbers
    series: metric, labels (row of `label_sets`)
    label_sets: a column a label name that was asked for, in lower case, null where absent
    """

    def __init__(self, keep: Container[str]) -> None:
        """Take the names of the labels to keep, in lower case."""
        self.categories = pl.Categories.random()
        # numbers are kept while something of these categories is there, and no longer
        self._anchor = pl.Series(dtype=pl.Categorical(self.categories))
        self.series = pl.DataFrame(schema={"metric": pl.String, "labels": pl.UInt32})
        self.label_sets = pl.DataFrame()
        self._keep = keep
        # the last of each stands for NO_HEAD
        self._kind = np.array([IS_SERIES], dtype=np.int8)
        self._series = np.array([UNKNOWN], dtype=np.int64)
        self._heads = pl.DataFrame(
            schema={"head": pl.String, "series": pl.Int64, "reason": pl.String}
        )
        self._sets = pl.DataFrame(
            schema={
                "text": pl.String, "target": pl.String, "labels": pl.UInt32, "reason": pl.String,
            }
        )  # fmt: skip

    @property
    def is_full(self) -> bool:
        """Whether so many beginnings were seen that further parts should be read without them."""
        return len(self._kind) > NUMBERS_MAX

    def kinds(self, heads: pl.Series, number: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return what kind of beginning each line has; those without one count as of a series.

        heads: the beginnings, of `categories`; number: theirs, or NO_HEAD
        """
        self._make_room(int(number.max(initial=NO_HEAD)) + 1)
        kind = self._kind[number]
        rows = np.flatnonzero(kind == NEW)
        if not len(rows):
            return kind
        first = self._first_rows(number, rows)
        texts = heads.gather(first).cast(pl.String)
        is_comment = texts.str.contains(COMMENT).to_numpy()
        is_mark = texts.str.starts_with(MARK).to_numpy()
        found = np.where(is_mark, IS_MARK, np.where(is_comment, IS_COMMENT, IS_SERIES))
        self._kind[number[first]] = found
        kind[rows] = self._kind[number[rows]]
        return kind

    def of_numbers(self, number: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the series of beginnings that were learned, IS_BAD where they name none."""
        return self._series[number]

    def new_among(self, number: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first of these rows for each beginning that is to be learned."""
        is_new = self._series[number[rows]] == UNKNOWN
        return self._first_rows(number, rows[is_new]) if is_new.any() else rows[:0]

    def learn(self, heads: pl.DataFrame) -> None:
        """Take apart beginnings that are not known yet.

        heads: head, target (who was asked, by the mark before it, or null); the first of equal
        ones counts
        """
        new = heads.unique("head", keep="first", maintain_order=True).join(
            self._heads, on="head", how="anti", maintain_order="left"
        )
        if new.is_empty():
            return
        pieces = new.select(
            "head",
            "target",
            pl.col("head")
            .str.splitn("{", 2)
            .struct.rename_fields(["metric", "text"])
            .struct.unnest(),
        ).with_columns(pl.col("metric").str.strip_chars(), pl.col("text").fill_null(""))
        quoted = pl.when(pl.col("metric") == "").then(pl.col("text").str.extract_groups(QUOTED))
        pieces = pieces.with_columns(
            metric=pl.coalesce(quoted.struct["name"], "metric"),
            text=pl.coalesce(quoted.struct["rest"], "text"),
        )
        self._learn_label_sets(pieces.select("text", "target").unique(maintain_order=True))
        named = pieces.join(
            self._sets, on=["text", "target"], how="left", nulls_equal=True, maintain_order="left"
        ).with_columns(
            reason=pl.when(pl.col("head").str.len_bytes() > HEAD_MAX_BYTES)
            .then(pl.lit(f"name and labels are longer than {HEAD_MAX_BYTES} bytes"))
            .when(~pl.col("metric").str.contains(NAME))
            .then(pl.lit("the line does not begin with the name of a metric"))
            .otherwise("reason")
        )
        is_good = pl.col("reason").is_null()
        number = self.series.height + is_good.cast(pl.Int64).cum_sum() - 1
        self._heads = pl.concat(
            [
                self._heads,
                named.select(
                    "head",
                    pl.when(is_good).then(number).otherwise(IS_BAD).alias("series"),
                    "reason",
                ),
            ]
        )
        self.series = pl.concat([self.series, named.filter(is_good).select("metric", "labels")])

    def note(self, number: NDArray[np.int64], heads: pl.Series) -> None:
        """Keep what series these numbers are of, by their beginnings, which are known."""
        self._series[number] = self.of_texts(heads)["series"].to_numpy()

    def of_texts(self, heads: pl.Series) -> pl.DataFrame:
        """Return series and reason (why it is IS_BAD, or null) of each beginning."""
        return (
            heads.to_frame("head")
            .join(self._heads, on="head", how="left", maintain_order="left")
            .select("series", "reason")
        )

    def _make_room(self, size: int) -> None:
        more = size - (len(self._kind) - 1)
        if more > 0:
            new = np.full(more, NEW, np.int8)
            self._kind = np.concatenate([self._kind[:-1], new, self._kind[-1:]])
            self._series = np.append(self._series, np.full(more, UNKNOWN))

    def _first_rows(self, number: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first of the rows of each number that they have."""
        backwards = rows[::-1]
        first = np.full(len(self._kind), NO_HEAD)
        first[number[backwards]] = backwards  # written last to first: the first stays
        found: NDArray[np.int64] = first[first != NO_HEAD]
        return found

    def _learn_label_sets(self, named: pl.DataFrame) -> None:
        new = named.join(
            self._sets, on=["text", "target"], how="anti", nulls_equal=True, maintain_order="left"
        )
        if new.is_empty():
            return
        read = [labels_of(text[:HEAD_MAX_BYTES], self._keep) for text in new["text"]]
        found = lines.label_columns([labels for labels, _ in read], new["target"])
        self.label_sets = pl.concat([self.label_sets, found], how="diagonal")
        at = self._sets.height
        self._sets = pl.concat(
            [
                self._sets,
                new.with_columns(
                    pl.int_range(at, at + pl.len(), dtype=pl.UInt32).alias("labels"),
                    pl.Series("reason", [reason for _, reason in read], dtype=pl.String),
                ),
            ]
        )

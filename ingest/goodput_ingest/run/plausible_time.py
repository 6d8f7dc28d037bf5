"""Rejects rows of implausible time from every batch before it is loaded.

One row of 2036 would move the end of a cluster's evidence there, and one of 1970 its start. A batch
with such rejects gets a digest of its own, so that the file can be loaded again once the clock or
the setting is corrected.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import polars as pl

from goodput_ingest.formats.timestamps import PRINTABLE
from goodput_queries.catalog import models
from goodput_queries.evidence import plausible
from goodput_queries.evidence.batch import Batch, Reject

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- naive UTC, as in the frames
DAY_US = 86_400_000_000
GAP = plausible.BULK_GAP_DAYS
REASON = "rejected because"  # no column of a table has spaces


@dataclass
class PlausibleTime:
    """The range of plausible times for the rows of one file or live source.

    is_recorded: the rows are of one file: its bulk is known from the batches so far, and what lies
    apart from it by a hole of over 400 days is rejected. A live source has no such bound: what it
    catches up on may be old.
    """

    earliest: datetime = plausible.EARLIEST
    now: Callable[[], datetime] = plausible.utc_now
    is_recorded: bool = False
    _days: Counter[int] = field(default_factory=Counter)  # stamps by day since 1970, about
    _bulk: tuple[int, int] | None = None  # its first and last day

    def checked(self, batch: Batch) -> Batch:
        """Return the batch without its implausible rows, which are among its rejects."""
        model = models.of_layer("raw").get(batch.table)
        if model is None or batch.rows.is_empty():
            return batch
        observed, planned = (
            _present(batch.rows, names) for names in (model.observed, model.planned)
        )
        if not observed and not planned:
            return batch
        latest = self.now() + plausible.AHEAD_MAX
        if self._are_within(batch.rows, observed, planned, latest):
            return batch
        reason = pl.coalesce(
            *(_reason(pl.col(c) < self.earliest, plausible.before(c, self.earliest))
              for c in (*observed, *planned)),
            *(_reason(pl.col(c) > latest, plausible.ahead(c)) for c in observed),
        )  # fmt: skip
        marked = batch.rows.with_columns(reason.alias(REASON))
        if self.is_recorded and observed:
            self._note_days(marked.filter(pl.col(REASON).is_null()), observed)
            if self._bulk is not None:
                first, last = (EPOCH + timedelta(days=day) for day in self._bulk)
                is_apart = (
                    (c, (pl.col(c) < first) | (pl.col(c) >= last + timedelta(days=1)))
                    for c in observed
                )
                apart = (_reason(one, plausible.far(c)) for c, one in is_apart)
                marked = marked.with_columns(pl.coalesce(REASON, *apart))
        return _without_marked(batch, marked)

    def _are_within(
        self, rows: pl.DataFrame, observed: Sequence[str], planned: Sequence[str], latest: datetime
    ) -> bool:
        """Say whether all rows are plausible by the least and the greatest moment alone."""
        columns = [*observed, *planned]
        ends = rows.select(
            *(pl.col(c).min().dt.timestamp("us").alias(f"first {c}") for c in columns),
            *(pl.col(c).max().dt.timestamp("us").alias(f"last {c}") for c in observed),
        ).row(0)  # numbers: not every moment of a frame is one of Python's
        firsts = [one for one in ends[: len(columns)] if one is not None]
        lasts = [one for one in ends[len(columns) :] if one is not None]
        if (firsts and min(firsts) < _us(self.earliest)) or (lasts and max(lasts) > _us(latest)):
            return False
        if not self.is_recorded or not lasts:
            return True
        first = min(one for one in ends[: len(observed)] if one is not None) // DAY_US
        last = max(lasts) // DAY_US
        if last - first > GAP:
            return False
        bulk = self._bulk or (first, last)
        if first < bulk[0] - GAP or last > bulk[1] + GAP:
            return False
        self._bulk = min(first, bulk[0]), max(last, bulk[1])
        for day in (first, last):  # no hole of the bulk is in between: where they lie is enough
            self._days[day] += (rows.height + 1) // 2
        return True

    def _note_days(self, rows: pl.DataFrame, observed: Sequence[str]) -> None:
        """Add the days of these rows, and recompute the bulk: the days around the median."""
        if rows.is_empty():
            return
        for column in observed:
            days = rows[column].drop_nulls().dt.date().to_physical().value_counts()
            self._days.update(dict(days.iter_rows()))
        self._bulk = plausible.bulk_of(self._days)


def _us(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def _present(rows: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    return [c for c in columns if isinstance(rows.schema.get(c), pl.Datetime)]


def _reason(is_bad: pl.Expr, reason: str) -> pl.Expr:
    return pl.when(is_bad).then(pl.lit(reason))


def _without_marked(batch: Batch, marked: pl.DataFrame) -> Batch:
    """Return the batch without the rows that have a reason to be rejected."""
    bad = marked.filter(pl.col(REASON).is_not_null())
    if bad.is_empty():
        return batch
    reasons = bad[REASON]
    content = bad.select(c for c in bad.drop(REASON) if c.null_count() < c.len())
    lines = (
        content.with_columns(PRINTABLE).write_ndjson().split("\n")[:-1]
    )  # texts may have other ends of lines in them
    rejects = [Reject(None, reason, line) for reason, line in zip(reasons, lines, strict=True)]
    return replace(
        batch,
        rows=marked.filter(pl.col(REASON).is_null()).drop(REASON),
        rejects=[*batch.rejects, *rejects],
        digest=f"{batch.digest} less {bad.height}",
    )

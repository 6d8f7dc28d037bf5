"""Change against an earlier window, over the clusters and hours that both windows cover.

The earlier window is the same hours of the week before; where nothing is known of them, the window
before, as long as this one; or what a baseline names. What one of the two windows lacks is left out
of both, and named. Where of the earlier one only whole hours are known, both have whole hours.
"""

import calendar
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta, tzinfo
from typing import cast

import polars as pl

from goodput_app.text import units
from goodput_queries.scope import Scope, epoch_ms, utc_at

HOUR_MS = timedelta(hours=1) // timedelta(milliseconds=1)
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS
NAMES = {DAY_MS: "the day before", WEEK_MS: "the week before"}
ALIKE = 0.02  # of the window: clusters end seconds apart
LEAST_COMMON = 0.5  # of the window that a cluster has in both: less says little of it
EVIDENCE_TOLERANCE = 0.05  # of the capacity that evidence classifies
UNSETTLED = "unsettled"
NOT_CERTAIN = "direction not certain"
MONTHS_DIFFER_MS = 3 * DAY_MS  # by so much at most
SHOWN = 5  # groups, the largest change first; the rest is one row
NAME_CHARS = 48


@dataclass(frozen=True)
class Baseline:
    """The earlier window that a reader chose: window, week, month or none; '' leaves it open.

    zone: whose months they are
    """

    name: str = ""
    zone: tzinfo = UTC

    @property
    def is_automatic(self) -> bool:
        """Say whether the reader left it open."""
        return not self.name

    @property
    def is_chosen(self) -> bool:
        """Say whether the reader named an earlier window."""
        return self.name in ("window", "week", "month")


AUTOMATIC = Baseline()


@dataclass(frozen=True)
class Windows:
    """Scopes of equal length to compare, this range's first; and what is left out, with reasons.

    name: of the earlier window; common_ms: how long both are
    """

    name: str
    pairs: tuple[tuple[Scope, Scope], ...]
    left_out: tuple[str, ...] = ()
    common_ms: int = 0


@dataclass(frozen=True)
class Change:
    """How far goodput moved, in shares of the capacity of each window.

    ratio: of the lower bound; classified: of the share of classified time that was goodput, None
    where a window has none
    """

    ratio: float
    classified: float | None
    is_certain: bool


@dataclass(frozen=True)
class Compared:
    """Groups of the ledger in both windows, and how far goodput moved (None: no capacity)."""

    windows: Windows
    now: pl.DataFrame
    then: pl.DataFrame
    change: Change | None

    @property
    def wasted(self) -> str:
        """Return the column of what was wasted: time where not both windows have a price."""
        return wasted_column(self.now, self.then)

    @property
    def totals(self) -> tuple[float, float]:
        """Return what was wasted in the earlier window and in this one."""
        before, after = (float(side[self.wasted].sum()) for side in (self.then, self.now))
        return before, after


def wasted_column(now: pl.DataFrame, then: pl.DataFrame) -> str:
    """Return the column of what was wasted: time where not both windows have a price."""
    sides = [side.filter(pl.col("wasted_ms") > 0) for side in (now, then)]
    priced = [bool(side["wasted_cost"].count()) for side in sides]
    is_priced = any(priced) and all(
        one or side.is_empty() for one, side in zip(priced, sides, strict=True)
    )
    return "wasted_cost" if is_priced else "wasted_ms"


def compared(
    scope: Scope,
    clusters: pl.DataFrame,
    ledger_of: Callable[[Scope], pl.DataFrame],
    grouped: Callable[[pl.DataFrame], pl.DataFrame],
    baseline: Baseline = AUTOMATIC,
) -> Compared | None:
    """Return a window beside the best earlier one that has capacity; None where none has.

    clusters: marts.clusters; ledger_of: marts.ledger_by_category of a scope; grouped: what sums a
    ledger up to groups
    """
    for found in windows(scope, clusters, baseline):
        now, then = (summed([ledger_of(pair[side]) for pair in found.pairs]) for side in (0, 1))
        if then["gpu_ms"].sum():
            return Compared(found, grouped(now), grouped(then), change(now, then))
    return None


def changes(
    now: pl.DataFrame, then: pl.DataFrame, column: str
) -> list[tuple[str, float, str | None]]:
    """Return label, change and colour of each group whose waste moved, in the order of `now`.

    They add up to the difference of the totals: what follows the SHOWN largest is one row.
    """
    sides = now.select(
        "category", "label", "colour", pl.col(column).fill_null(0).alias("now")
    ).join(
        then.select("category", pl.col(column).fill_null(0).alias("then")),
        on="category",
        how="left",
        maintain_order="left",
    )
    rows = [
        (row["label"], float(row["now"] - (row["then"] or 0)), row["colour"])
        for row in sides.iter_rows(named=True)
    ]
    rows = [row for row in rows if row[1]]
    largest = sorted(rows, key=lambda row: -abs(row[1]))[:SHOWN]
    kept = [row for row in rows if row in largest]
    if rest := [row for row in rows if row not in largest]:
        kept.append(("others", sum(amount for _, amount, _ in rest), None))
    return kept


def said_of(windows: Windows) -> str:
    """Return what is compared, and what is left out and why."""
    said = f"Like for like over {units.duration(windows.common_ms / 1000)} of both windows."
    if windows.left_out:
        said += f" Left out: {', '.join(windows.left_out)}."
    return said


def windows(
    scope: Scope, clusters: pl.DataFrame, baseline: Baseline = AUTOMATIC
) -> Iterator[Windows]:
    """Yield what a window can be compared with, the best first; nothing where none is known.

    clusters: marts.clusters
    """
    if scope.from_ms is None or scope.to_ms is None:
        return
    if scope.cluster is not None:
        clusters = clusters.filter(pl.col("cluster") == scope.cluster)
    spans = list(_spans(clusters))
    whole_ms = cast("int", clusters["whole_hours_until_at"].dt.epoch("ms").max() or 0)
    for shift, name in shifts(scope.from_ms, scope.to_ms, baseline, whole_ms):
        cut_ms = scope.to_ms - scope.from_ms - shift
        of = replace(scope, to_ms=scope.from_ms + shift) if cut_ms > 0 else scope
        if (found := _compared(of, spans, shift, name, whole_ms)) is not None:
            cut = (f"the last {units.duration(cut_ms / 1000)}",) if cut_ms > 0 else ()
            yield replace(found, left_out=(*cut, *found.left_out))


def shifts(
    from_ms: int, to_ms: int, baseline: Baseline, whole_ms: int = 0
) -> Iterator[tuple[int, str]]:
    """Yield how much earlier windows to compare with are, and what they are called."""
    length = to_ms - from_ms
    weeks = -(-length // WEEK_MS)
    if baseline.name == "week" or (baseline.is_automatic and weeks == 1):
        before = "of the week" if weeks == 1 else f"{weeks} weeks"
        yield weeks * WEEK_MS, f"the same hours {before} before"
    if baseline.name == "month":
        yield _months_before(from_ms, length, baseline.zone)
    if baseline.name == "window" or baseline.is_automatic:
        if from_ms - length < whole_ms:
            length = -(-length // HOUR_MS) * HOUR_MS
        yield length, NAMES.get(length, f"the {units.duration(length / 1000)} before")


def _months_before(from_ms: int, length: int, zone: tzinfo) -> tuple[int, str]:
    """Return the shift to the same day of the last month before that is wholly before the window.

    Months differ in length: the end of a longer one may be left out.
    """
    at = utc_at(from_ms).replace(tzinfo=UTC).astimezone(zone)
    shift = months = 0
    while shift < length - MONTHS_DIFFER_MS or not months:
        months += 1
        year, month = divmod(at.year * 12 + at.month - 1 - months, 12)
        day = min(at.day, calendar.monthrange(year, month + 1)[1])
        then = at.replace(year=year, month=month + 1, day=day).astimezone(UTC)
        shift = from_ms - epoch_ms(then.replace(tzinfo=None))
    before = "of the month" if months == 1 else f"{months} months"
    return shift, f"the same days {before} before"


def _spans(clusters: pl.DataFrame) -> Iterator[tuple[str, int, int]]:
    """Return the name and the first and last millisecond of each cluster."""
    epochs = pl.col("first_at", "as_of_at").dt.epoch("ms")
    yield from clusters.sort("cluster").select("cluster", epochs).iter_rows()


def _compared(
    scope: Scope, spans: list[tuple[str, int, int]], shift: int, name: str, whole_ms: int
) -> Windows | None:
    start, end = scope.from_ms or 0, scope.to_ms or 0
    length = end - start
    common: dict[str, tuple[int, int]] = {}
    left_out = []
    for cluster, first, last in spans:
        begin, stop = max(start, first + shift), min(end, last)
        if begin - shift < whole_ms:
            begin, stop = -(-begin // HOUR_MS) * HOUR_MS, stop // HOUR_MS * HOUR_MS
        if stop - begin >= LEAST_COMMON * length:
            common[cluster] = begin, stop
        elif why := _reason(first, last, (start, end), shift, name):
            left_out.append(f"{cluster[:NAME_CHARS]} ({why})")
    if not common:
        return None
    begin, stop = max(b for b, _ in common.values()), min(s for _, s in common.values())
    if not left_out and length - (stop - begin) <= ALIKE * length:
        parts = [replace(scope, from_ms=begin, to_ms=stop)]
    else:
        parts = [
            replace(scope, cluster=cluster, from_ms=b, to_ms=s)
            for cluster, (b, s) in common.items()
        ]
    pairs = tuple(
        (part, replace(part, from_ms=(part.from_ms or 0) - shift, to_ms=(part.to_ms or 0) - shift))
        for part in parts
    )
    shortest = min(s - b for b, s in common.values())
    return Windows(name, pairs, tuple(left_out), shortest)


def _reason(first: int, last: int, window: tuple[int, int], shift: int, name: str) -> str | None:
    """Return why a cluster is left out; None for one that has no data in either window."""
    start, end = window
    is_now, is_then = last > start and first < end, last + shift > start and first + shift < end
    if is_now and is_then and (common := min(end, last) - max(start, first + shift)) > 0:
        return f"data of {units.duration(common / 1000)} in both"
    if is_now:
        return f"no data in {name}"
    return "no data in this range" if is_then else None


def beside(
    now: pl.DataFrame, then: pl.DataFrame, by: Sequence[str], amount: str, most: str | None = None
) -> pl.DataFrame:
    """Return `by`, before, change and direction of an amount in rows of two windows.

    The direction is not certain where the share of the time that evidence covers moved by more
    than EVIDENCE_TOLERANCE, or where the upper bound moved the other way.
    now, then: with amount, gpu_ms and covered_ms; most: the column of the upper bound
    """
    columns = [amount, "gpu_ms", "covered_ms", *([most] if most else [])]
    sides = (side.group_by(by).agg(pl.col(columns).sum()) for side in (now, then))
    left, right = sides
    rows = left.join(right, on=by, how="full", coalesce=True, nulls_equal=True, suffix="_then")
    rows = rows.with_columns(pl.exclude(by).fill_null(0))
    change = pl.col(amount) - pl.col(f"{amount}_then")
    covered = [pl.col(f"covered_ms{of}") / pl.col(f"gpu_ms{of}") for of in ("", "_then")]
    moved = (covered[0] - covered[1]).abs().fill_nan(0)  # NaN: no time in one of the windows
    is_certain = moved <= EVIDENCE_TOLERANCE
    if most is not None:
        is_certain &= change * (pl.col(most) - pl.col(f"{most}_then")) >= 0
    direction = (
        pl.when(change == 0)
        .then(pl.lit("unchanged"))
        .when(~is_certain)
        .then(pl.lit(NOT_CERTAIN))
        .when(change > 0)
        .then(pl.lit("more"))
        .otherwise(pl.lit("less"))
    )
    return rows.select(
        *by, before=f"{amount}_then", change=change.cast(pl.Float64), direction=direction
    )


def summed(ledgers: list[pl.DataFrame]) -> pl.DataFrame:
    """Return the sum of ledgers, which have the same categories; no price is not a cost of 0.

    ledgers: of marts.ledger_by_category
    """
    priced = pl.when(pl.col("cost").count() > 0).then(pl.col("cost").sum()).alias("cost")
    fixed = pl.exclude("category", "gpu_ms", "cost", "gpu_hi_ms", "share_ratio", "unpriced_gpu_ms")
    return (
        pl.concat(ledgers)
        .group_by("category", maintain_order=True)
        .agg(fixed.first(), pl.col("gpu_ms").sum(), priced)
    )


def change(now: pl.DataFrame, then: pl.DataFrame) -> Change | None:
    """Return how far goodput moved; None where a window has no capacity.

    The direction is certain where the lower bound and the share of classified time moved the same
    way, and evidence classifies about as much of both. now, then: of `summed`
    """
    if (left := _shares(now)) is None or (right := _shares(then)) is None:
        return None
    ratio = left["goodput"] - right["goodput"]
    known = [1 - shares[UNSETTLED] for shares in (left, right)]
    classified = None
    if all(known):
        classified = left["goodput"] / known[0] - right["goodput"] / known[1]
    is_same_way = classified is not None and ratio * classified >= 0
    return Change(ratio, classified, is_same_way and abs(known[0] - known[1]) <= EVIDENCE_TOLERANCE)


def _shares(ledger: pl.DataFrame) -> Mapping[str, float] | None:
    """Return the share of the capacity that is goodput, and that is not settled."""
    capacity = ledger["gpu_ms"].sum()
    if not capacity:
        return None
    return {
        kind: int(ledger.filter(pl.col("kind") == kind)["gpu_ms"].sum()) / int(capacity)
        for kind in ("goodput", UNSETTLED)
    }

"""How much of a day there is evidence of, by cluster, and whether it is whole."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest

from goodput_billing.statement.closing import Evidence, is_provable
from goodput_billing.statement.days import HOUR_MS, Day

DAY = Day(date(2026, 11, 19), "UTC", 1_795_046_400_000, 1_795_132_800_000)
DAY_MS = 24 * HOUR_MS


def evidence(**hours):
    """Return evidence of clusters, from and until so many hours after the day began."""
    return Evidence(
        {name: DAY.from_ms + first * HOUR_MS for name, (first, _) in hours.items()},
        {name: DAY.from_ms + last * HOUR_MS for name, (_, last) in hours.items()},
    )


def test_evidence_of_several_clusters_reaches_as_far_as_that_of_the_slowest():
    known = evidence(a=(0, 30), b=(0, 20), c=(0, 10))

    assert known.reach({"a", "b"}) == DAY.from_ms + 20 * HOUR_MS
    assert known.reach({"a", "unknown"}) == DAY.from_ms + 30 * HOUR_MS
    assert known.reach({"unknown"}) is None


def test_of_each_cluster_the_part_of_the_day_counts_that_its_evidence_covers():
    touches = {"before": (-9, 0), "after": (24, 30), "long_after": (40, 50)}
    known = evidence(whole=(-5, 30), begins=(6, 30), ends=(-5, 8), within=(6, 8), **touches)

    assert known.covered_ms(DAY) == {
        "whole": DAY_MS, "begins": 18 * HOUR_MS, "ends": 8 * HOUR_MS, "within": 2 * HOUR_MS,
    }  # fmt: skip


def test_the_cluster_with_most_evidence_decides_how_much_of_a_day_is_known():
    assert evidence(a=(0, 6), b=(0, 12)).part_of(DAY) == Fraction(1, 2)
    assert evidence().part_of(DAY) == 0


def test_a_cluster_that_was_charged_and_has_no_evidence_any_more_was_covered():
    totals = {("known", "A"): Decimal(3), ("dropped", "A"): Decimal(5)}

    made = evidence(known=(0, 6), unused=(0, 3)).of_day(DAY, totals)

    assert made.totals == totals
    assert made.covered_ms == {"known": 6 * HOUR_MS, "unused": 3 * HOUR_MS, "dropped": DAY_MS}


@pytest.mark.parametrize(
    ("kept_before_ms", "is_whole"),
    [(None, True), (HOUR_MS, True), (HOUR_MS - 1, False), (0, False)],
)
def test_a_day_is_whole_if_an_hour_before_it_is_kept(store, kept_before_ms, is_whole):
    """The energy of the first hour needs the reading before it; another table is kept longer."""
    if kept_before_ms is not None:
        with store.writing() as cursor:
            for table, more_ms in (("gpu_samples", 0), ("node_samples", 9 * HOUR_MS)):
                cursor.execute(
                    "insert into state.kept_from values ($1, $2)",
                    [table, DAY.from_ms - kept_before_ms - more_ms],
                )

    assert is_provable(store, DAY) == is_whole

"""How much of a day there is evidence of, whether it is whole, and what a month will come to."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

from tests.tables import each

from goodput_billing.statement.amounts.summary import CoveredDay
from goodput_billing.statement.closing import Evidence, is_provable
from goodput_billing.statement.days import HOUR_MS, Day
from goodput_billing.statement.forecast import DAY_MS, forecast

DAY = Day(date(2026, 11, 19), "UTC", 1_795_046_400_000, 1_795_132_800_000)


def evidence(**hours):
    """Return evidence of clusters, from and until so many hours after the day began."""
    return Evidence(
        {name: DAY.from_ms + first * HOUR_MS for name, (first, _) in hours.items()},
        {name: DAY.from_ms + last * HOUR_MS for name, (_, last) in hours.items()},
    )


def test_evidence_reaches_as_far_as_the_slowest_cluster_and_covers_what_the_fullest_does():
    known = evidence(a=(0, 30), b=(0, 20), c=(0, 10))

    assert known.reach({"a", "b"}) == DAY.from_ms + 20 * HOUR_MS
    assert known.reach({"a", "unknown"}) == DAY.from_ms + 30 * HOUR_MS
    assert known.reach({"unknown"}) is None
    assert evidence(a=(0, 6), b=(0, 12)).part_of(DAY) == Fraction(1, 2)
    assert evidence().part_of(DAY) == 0


def test_of_each_cluster_the_part_of_the_day_counts_that_its_evidence_covers():
    touches = {"before": (-9, 0), "after": (24, 30), "long_after": (40, 50)}
    known = evidence(whole=(-5, 30), begins=(6, 30), ends=(-5, 8), within=(6, 8), **touches)

    assert known.covered_ms(DAY) == {
        "whole": DAY_MS, "begins": 18 * HOUR_MS, "ends": 8 * HOUR_MS, "within": 2 * HOUR_MS,
    }  # fmt: skip


def test_a_cluster_that_was_charged_and_has_no_evidence_any_more_was_covered():
    totals = {("known", "A"): Decimal(3), ("dropped", "A"): Decimal(5)}

    made = evidence(known=(0, 6), unused=(0, 3)).of_day(DAY, totals)

    assert made.totals == totals
    assert made.covered_ms == {"known": 6 * HOUR_MS, "unused": 3 * HOUR_MS, "dropped": DAY_MS}


@each((None, True), (HOUR_MS, True), (HOUR_MS - 1, False), (0, False))
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


MONTH_MS = 30 * DAY_MS


def day(covered_h, cost, cluster="c", account="a"):
    """Give a day on which one account paid so much on one cluster."""
    return CoveredDay({(cluster, account): Decimal(cost)}, {cluster: round(covered_h * HOUR_MS)})


def found(*days, cluster=None):
    return forecast(days, MONTH_MS, "a", cluster)


@each({
    "a covered hour": ([day(24, 24), day(12, 12)], "720.00", "720.00", "720.00"),
    "lowest, highest day": ([day(24, 24), day(24, 48)], "1080.00", "744.00", "1416.00"),
    "one day has no interval": ([day(24, 10)], "300.00", None, None),
    "less than half a day sets no bound":  # 148 and 671 hours at 1
        ([day(24, 24), day(24, 24), day(1, 100)], "2174.69", "819.00", "2174.69"),
    "a whole month was spent": ([day(24, 1)] * 30, "30.00", "30.00", "30.00"),
})  # fmt: skip
def test_the_rest_of_the_month_goes_on_as_the_covered_hours(days, expected, low, high):
    made = found(*days)
    costs = (made.expected_cost, made.low_cost, made.high_cost)
    assert costs == tuple(c and Decimal(c) for c in (expected, low, high))


@each(([day(23.9, 10)], 10, "23.9"), ([day(48, 48), day(0.5, 3, cluster="d")], 51, "0.5"))
def test_below_a_covered_day_nothing_is_forecast(days, spent, covered_h):
    made = found(*days)
    assert (made.expected_cost, made.low_cost, made.high_cost) == (None, None, None)
    assert made.month_cost == Decimal(spent)
    assert made.basis == f"{covered_h} covered hours: less than a day"


def test_each_cluster_goes_on_by_its_own_covered_hours():
    costs = {("c", "a"): Decimal(24), ("d", "a"): Decimal(48)}
    both = CoveredDay(costs, {"c": DAY_MS, "d": 2 * DAY_MS})
    assert found(both).expected_cost == Decimal("1440.00")
    assert found(both, cluster="c").expected_cost == Decimal("720.00")

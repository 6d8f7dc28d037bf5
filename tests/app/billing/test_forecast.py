"""What a month will come to rests on the hours that evidence covers, cluster by cluster."""

from decimal import Decimal

from goodput_billing.statement.amounts.summary import CoveredDay
from goodput_billing.statement.forecast import DAY_MS, HOUR_MS, forecast

MONTH_MS = 30 * DAY_MS


def day(covered_h, cost, cluster="c", account="a"):
    """Give a day on which one account paid so much on one cluster."""
    return CoveredDay({(cluster, account): Decimal(cost)}, {cluster: round(covered_h * HOUR_MS)})


def found(*days, cluster=None):
    return forecast(days, MONTH_MS, "a", cluster)


def test_the_month_goes_on_at_the_cost_of_a_covered_hour():
    assert found(day(24, 24), day(12, 12)).expected_cost == Decimal("720.00")


def test_the_interval_is_the_rest_of_the_month_at_the_days_of_lowest_and_highest_cost():
    made = found(day(24, 24), day(24, 48))

    assert made.expected_cost == Decimal("1080.00")
    assert (made.low_cost, made.high_cost) == (Decimal("744.00"), Decimal("1416.00"))


def test_below_a_covered_day_nothing_is_forecast():
    made = found(day(23.9, 10))

    assert (made.expected_cost, made.low_cost, made.high_cost) == (None, None, None)
    assert made.month_cost == Decimal(10)
    assert made.basis == "23.9 covered hours: less than a day"


def test_one_day_alone_has_no_interval():
    made = found(day(24, 10))

    assert (made.expected_cost, made.low_cost) == (Decimal("300.00"), None)


def test_a_day_that_is_covered_for_less_than_half_sets_no_bound():
    made = found(day(24, 24), day(24, 24), day(1, 100))

    assert made.low_cost == Decimal("819.00")  # 148 and 671 hours at 1
    assert made.high_cost == made.expected_cost == Decimal("2174.69")


def test_each_cluster_goes_on_by_its_own_covered_hours():
    both = CoveredDay(
        {("c", "a"): Decimal(24), ("d", "a"): Decimal(48)}, {"c": DAY_MS, "d": 2 * DAY_MS}
    )

    assert found(both).expected_cost == Decimal("1440.00")
    assert found(both, cluster="c").expected_cost == Decimal("720.00")


def test_a_cluster_that_is_hardly_covered_leaves_the_whole_unsaid():
    made = found(day(48, 48), day(0.5, 3, cluster="d"))

    assert made.expected_cost is None
    assert made.month_cost == Decimal(51)
    assert made.basis == "0.5 covered hours: less than a day"


def test_a_month_that_is_wholly_covered_is_what_was_spent():
    made = found(*[day(24, 1)] * 30)

    assert made.expected_cost == made.low_cost == made.high_cost == Decimal("30.00")

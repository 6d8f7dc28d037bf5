"""What a month will come to rests on the hours that evidence covers, cluster by cluster."""

from decimal import Decimal

import pytest

from goodput_billing.statement.amounts.summary import CoveredDay
from goodput_billing.statement.forecast import DAY_MS, HOUR_MS, forecast

MONTH_MS = 30 * DAY_MS


def day(covered_h, cost, cluster="c", account="a"):
    """Give a day on which one account paid so much on one cluster."""
    return CoveredDay({(cluster, account): Decimal(cost)}, {cluster: round(covered_h * HOUR_MS)})


def found(*days, cluster=None):
    return forecast(days, MONTH_MS, "a", cluster)


@pytest.mark.parametrize(
    ("days", "expected", "low", "high"),
    [
        pytest.param([day(24, 24), day(12, 12)], "720.00", "720.00", "720.00", id="a covered hour"),
        pytest.param(
            [day(24, 24), day(24, 48)], "1080.00", "744.00", "1416.00", id="lowest, highest day"
        ),
        pytest.param([day(24, 10)], "300.00", None, None, id="one day has no interval"),
        pytest.param(  # 148 and 671 hours at 1
            [day(24, 24), day(24, 24), day(1, 100)], "2174.69", "819.00", "2174.69",
            id="less than half a day sets no bound",
        ),
        pytest.param([day(24, 1)] * 30, "30.00", "30.00", "30.00", id="a whole month was spent"),
    ],
)  # fmt: skip
def test_the_rest_of_the_month_goes_on_as_the_covered_hours(days, expected, low, high):
    made = found(*days)

    costs = (made.expected_cost, made.low_cost, made.high_cost)
    assert costs == tuple(c and Decimal(c) for c in (expected, low, high))


@pytest.mark.parametrize(
    ("days", "spent", "covered_h"),
    [([day(23.9, 10)], 10, "23.9"), ([day(48, 48), day(0.5, 3, cluster="d")], 51, "0.5")],
    ids=["all", "one cluster"],
)
def test_below_a_covered_day_nothing_is_forecast(days, spent, covered_h):
    made = found(*days)

    assert (made.expected_cost, made.low_cost, made.high_cost) == (None, None, None)
    assert made.month_cost == Decimal(spent)
    assert made.basis == f"{covered_h} covered hours: less than a day"


def test_each_cluster_goes_on_by_its_own_covered_hours():
    both = CoveredDay(
        {("c", "a"): Decimal(24), ("d", "a"): Decimal(48)}, {"c": DAY_MS, "d": 2 * DAY_MS}
    )

    assert found(both).expected_cost == Decimal("1440.00")
    assert found(both, cluster="c").expected_cost == Decimal("720.00")

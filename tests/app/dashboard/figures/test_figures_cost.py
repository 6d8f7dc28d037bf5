"""Charts of money: parts that add up, many accounts as one bar, budgets, hostile names."""

from datetime import date
from decimal import Decimal

import polars as pl
import pytest
from tests.app.billing.conftest import line_of_no_run

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures import cost
from goodput_billing.statement import window
from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.budgets import SCHEMA as BUDGETS

HOUR_MS = 3_600_000


def line(kind, hours, team=None, **more):
    """Return a line of a day by account, at 2 dollars, productive unless said otherwise."""
    gpu_ms = hours * HOUR_MS
    usual = {"productive_ms": gpu_ms if kind == "usage" else 0, "unsettled_ms": 0}
    return line_of_no_run(kind, gpu_ms, team, **usual | more)


def charged(*lines, idle="none"):
    """Return the accounts of a day as the page adds them up."""
    frame = pl.DataFrame(lines, infer_schema_length=None)
    return window.added_up([window.computed_of(frame, Policy(idle))])


@pytest.mark.parametrize("idle", ["none", "proportional"])
def test_parts_of_a_charge_add_up_to_its_total(idle):
    waste = {"productive_ms": HOUR_MS, "own_waste_ms": 2 * HOUR_MS, "platform_waste_ms": HOUR_MS}
    accounts = charged(
        line("usage", 4, "a", **waste, energy_mj=1, metered_mj_price=Decimal(3_600_000_000)),
        line("usage", 6, "b"),
        line("idle", 5),
        line("not_available", 2),
        idle=idle,
    )

    for row in cost.parts(accounts).to_dicts():
        assert sum(row[name] for name in theme.MONEY) == row["total_cost"]


def test_the_accounts_with_the_highest_cost_have_a_bar_each_and_the_others_one():
    accounts = charged(*(line("usage", n + 1, f"t{n:03d}") for n in range(40)))

    shown = cost.highest(accounts)

    assert shown.height == cost.ACCOUNTS_SHOWN
    assert shown["label"][0] == "t039"
    assert shown["label"][-1] == "26 others"
    assert shown["total_cost"].sum() == accounts["total_cost"].sum()
    assert len(cost.by_account(shown).data[0].y) == cost.ACCOUNTS_SHOWN


def test_accounts_of_one_name_are_told_apart_by_their_clusters():
    accounts = charged(line("usage", 2, "a"), line("usage", 1, "a", cluster="d"))

    assert cost.by_account(cost.highest(accounts)).data[0].y == ("a (c)", "a (d)")


def test_days_are_drawn_as_they_add_up_and_empty_ones_left_out():
    one, two = charged(line("usage", 2, "a")), charged(line("usage", 3, "a"))
    none = pl.DataFrame(schema=one.schema)

    days = cost.each_day(
        [(date(2027, 1, 2), two), (date(2027, 1, 1), one), (date(2027, 1, 3), none)]
    )

    assert days["total_cost"].to_list() == [4, 6]
    assert cost.by_day(days).data[0].x == ("2027-01-01", "2027-01-02")


def budget(account, month, forecast, allowed):
    return {
        "account": account, "cluster": None, "month_cost": Decimal(month),
        "forecast_cost": None if forecast is None else Decimal(forecast),
        "forecast_low_cost": None, "forecast_high_cost": None, "covered_h": 48.0, "basis": "",
        "budget_cost": Decimal(allowed), "spent_ratio": month / allowed,
    }  # fmt: skip


def test_accounts_over_their_budget_come_first_and_are_red():
    rows = [budget("within", 10, 50, 100), budget("over", 40, 120, 100)]

    shown = cost.most_over_budget(pl.DataFrame(rows, schema=BUDGETS))
    figure = cost.budgets(shown)

    assert shown["account"].to_list() == ["over", "within"]
    assert list(figure.data[1].marker.color) == [
        theme.style("fault").colour, theme.style("free").colour,
    ]  # fmt: skip
    assert list(figure.data[1].x) == [80, 40]
    assert "(120 %)" in figure.data[3].text[0]


def test_a_month_without_a_forecast_draws_what_is_spent():
    rows = pl.DataFrame([budget("a", 10, None, 100)], schema=BUDGETS)

    figure = cost.budgets(cost.most_over_budget(rows))

    assert list(figure.data[0].x) == [10]
    assert list(figure.data[1].x) == [0]


def test_unit_costs_leave_out_what_no_productive_hour_came_to():
    accounts = charged(line("usage", 4, "a"), line("usage", 4, "b", productive_ms=0))

    figure = cost.unit_costs(accounts)

    held, useful = (trace for trace in figure.data if trace.name)
    assert list(held.x) == [2, 2]
    assert sorted(useful.x, key=str) == [2.0, None]

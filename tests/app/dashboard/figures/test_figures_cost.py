"""Charts of money and of hardware: parts that add up, budgets, failures, bandwidth, power."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from tests.app.billing.conftest import line_of_no_run
from tests.tables import gives

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures import cost, health, network, power
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
        line("usage", 6, "b"), line("idle", 5), line("not_available", 2), idle=idle,
    )  # fmt: skip

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
    of_one_name = charged(line("usage", 2, "a"), line("usage", 1, "a", cluster="d"))
    assert cost.by_account(cost.highest(of_one_name)).data[0].y == ("a (c)", "a (d)")


def test_days_are_drawn_as_they_add_up_and_empty_ones_left_out():
    one, two = charged(line("usage", 2, "a")), charged(line("usage", 3, "a"))
    of = {2: two, 1: one, 3: pl.DataFrame(schema=one.schema)}
    days = cost.each_day([(date(2027, 1, day), accounts) for day, accounts in of.items()])

    assert days["total_cost"].to_list() == [4, 6]
    assert cost.by_day(days).data[0].x == ("2027-01-01", "2027-01-02")


def budget(account, month, forecast, allowed):
    return {
        "account": account, "cluster": None, "month_cost": Decimal(month),
        "forecast_cost": None if forecast is None else Decimal(forecast),
        "forecast_low_cost": None, "forecast_high_cost": None, "covered_h": 48.0, "basis": "",
        "budget_cost": Decimal(allowed), "spent_ratio": month / allowed,
    }  # fmt: skip


def test_accounts_over_their_budget_come_first_and_red_and_without_a_forecast_is_what_is_spent():
    rows = [budget("within", 10, 50, 100), budget("over", 40, 120, 100)]
    unknown = pl.DataFrame([budget("a", 10, None, 100)], schema=BUDGETS)

    shown = cost.most_over_budget(pl.DataFrame(rows, schema=BUDGETS))
    figure, spent = cost.budgets(shown), cost.budgets(cost.most_over_budget(unknown))

    assert shown["account"].to_list() == ["over", "within"]
    colours = [theme.style(name).colour for name in ("fault", "free")]
    assert list(figure.data[1].marker.color) == colours
    assert list(figure.data[1].x) == [80, 40]
    assert "(120 %)" in figure.data[3].text[0]
    assert [list(spent.data[n].x) for n in (0, 1)] == [[10], [0]]


def test_unit_costs_leave_out_what_no_productive_hour_came_to():
    accounts = charged(line("usage", 4, "a"), line("usage", 4, "b", productive_ms=0))
    held, useful = (trace for trace in cost.unit_costs(accounts).data if trace.name)
    assert list(held.x) == [2, 2]
    assert sorted(useful.x, key=str) == [2.0, None]


FIRST_DAY = datetime(2026, 11, 17)  # noqa: DTZ001 -- UTC
DAYS = [FIRST_DAY + timedelta(days=day) for day in range(3)]
COUNT = {"unit": "count"}


def days(*rows):
    """Return rows of marts.health_by_node_day: node, number of the day, value."""
    found = [
        {"cluster": "c", "node": node, "day_at": DAYS[day], "value": value}
        for node, day, value in rows
    ]
    return pl.DataFrame(found)


def cells(figure, name):
    (trace,) = [trace for trace in figure.data if trace.name == name]
    return [json.loads(cell[0]) for cell in trace.customdata or []]


def test_a_day_with_errors_one_without_and_one_that_was_not_read_look_different():
    figure = health.node_days(days(("a", 0, 4.0), ("a", 1, 0.0)), DAYS, COUNT)

    assert cells(figure, "read") == [["c", "a", "2026-11-17"]]
    assert cells(figure, "0") == [["c", "a", "2026-11-18"]]
    assert cells(figure, "not read") == [["c", "a", "2026-11-19"]]
    *_, unread = figure.data
    assert unread.marker.pattern.shape
    assert list(unread.hovertext) == ["a, 2026-11-19: not read"]

    thermal = health.node_days(days(("a", 0, 5_400.0)), DAYS, {"unit": "GPU-s"})
    assert list(thermal.data[0].text) == ["1.5"]
    assert thermal.layout.coloraxis.colorbar.title.text == "GPU-h"


def size(gpus, failures, **more):
    return {
        "cluster": "c", "gpus_from": gpus, "gpus_to": gpus, "attempts": 5, "gpu_ms": 3_600_000,
        "failures": failures, "mtbf_s": None, "mtbf_low_s": 3_600.0, "mtbf_high_s": None, **more,
    }  # fmt: skip


def test_time_between_failures_has_its_interval_and_no_failure_a_lower_bound_alone():
    failed = size(2, 1, mtbf_s=7_200.0, mtbf_high_s=36_000.0)

    points, bounds = health.reliability(pl.DataFrame([size(1, 0), failed])).data
    assert (list(points.x), list(points.y)) == ([2], [2.0])
    assert (list(points.error_y.array), list(points.error_y.arrayminus)) == ([8.0], [1.0])
    assert (list(bounds.x), list(bounds.y)) == ([1], [1.0])
    assert bounds.customdata[0].startswith("1 GPU: no failure: at least 1h")


MIB = 2**20
HOSTILE = "<b>x</b> %{y}"


def shape(**columns):
    usual = {
        "operation": ["AllReduce", "AllReduce", HOSTILE], "size_from_bytes": [MIB, 256 * MIB, MIB],
        "p50_bytes_per_s": [40e9, 400e9, 20e9], "p1_bytes_per_s": [30e9, 100e9, 10e9],
        "expected_bytes_per_s": [None, 430e9, None], "expected_source": [None, "3 runs <i>", None],
        "operations": [1000, 5, 7],
    }  # fmt: skip
    return pl.DataFrame({**usual, **columns})


def test_each_operation_has_median_and_slowest_and_expected_where_it_is_known():
    figure = network.bandwidth(shape())

    found = [(trace.name, trace.line.dash, list(trace.y)) for trace in figure.data]
    hostile = theme.plotly_text(HOSTILE)
    assert found == [
        (hostile, "solid", [20.0]), (hostile, "dot", [10.0]), ("AllReduce", "solid", [40.0, 400.0]),
        ("AllReduce", "dot", pytest.approx([30.0, 100.0])),
        ("AllReduce, expected", "dash", [430.0]),
    ]  # fmt: skip
    assert "<b>" not in hostile


def test_runs_of_one_shape_are_one_line_over_time():
    at = [datetime(2026, 11, day) for day in (3, 1, 2)]  # noqa: DTZ001 -- UTC
    rows = pl.DataFrame(
        {"label": ["a", "a", HOSTILE], "run_at": at, "busbw_bytes_per_s": [3e9, 1e9, 2e9]}
    )

    figure = network.benchmarks(rows)

    assert [list(trace.y) for trace in figure.data] == [[1.0, 3.0], [2.0]]
    assert figure.data[1].name == theme.plotly_text(HOSTILE, 80)


START = datetime(2027, 1, 15, 8, tzinfo=UTC).replace(tzinfo=None)
BUCKET_MS = 600_000
WINDOW = START, START + timedelta(minutes=20)


def frame(*rows):
    """Return rows of marts.power_over_time: name, availability, bucket, power."""
    return pl.DataFrame(
        [{"cluster": "c", "name": name, "availability": availability, "power_w": watts,
          "at": START + timedelta(milliseconds=BUCKET_MS * bucket), "here_ms": 600_000.0,
          "read_ms": 0.0 if watts is None else 600_000.0}
         for name, availability, bucket, watts in rows],
        schema_overrides={"availability": pl.String, "name": pl.String, "power_w": pl.Float64},
    )  # fmt: skip


def bars(*rows):
    figure = power.over_time(frame(*rows), BUCKET_MS, WINDOW, "Rack unknown")
    return {trace.name: list(trace.y) for trace in figure.data if trace.type == "bar"}


# the most power at the bottom, what is not allocated on top
test_names_stand_in_their_order = gives(
    lambda *rows: list(bars(*rows)),
    (("small", None, 0, 100.0), ("big", None, 0, 400.0), ["big", "small"]),
    ((None, "free", 0, 900.0), ("team", "held", 0, 100.0), ["team", "Unallocated"]),
    ((None, None, 0, 100.0), ["Rack unknown"]),
)


def test_a_bucket_without_a_reading_has_no_bar_and_a_name_like_a_label_of_ours_is_a_name():
    unread = frame(("a", None, 0, 100.0), ("a", None, 1, None))
    alike = frame(("Unallocated", "held", 0, 100.0), (None, "free", 0, 50.0))

    bar, coverage = power.over_time(unread, BUCKET_MS, WINDOW, "?").data
    named = power.over_time(alike, BUCKET_MS, WINDOW, "?").data[:2]

    assert list(bar.y) == [100.0]
    assert list(coverage.y) == [100.0, 0.0, 0.0]
    assert [(trace.name, *trace.y) for trace in named] == [
        ("Unallocated", 100.0), ("Unallocated", 50.0)
    ]  # fmt: skip


def test_of_many_names_the_smaller_ones_are_added_up():
    found = bars(*((f"n{i:02}", None, 0, 100.0 - i) for i in range(20)))
    assert list(found)[-1] == "12 more"
    assert sum(values[0] for values in found.values()) == pytest.approx(100 * 20 - 190)

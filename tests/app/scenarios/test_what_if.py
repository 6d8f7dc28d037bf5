"""Scenarios: the worked figures of the requirements, bounds, and what is not known."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, strategies
from tests.tables import each, gives

from goodput_scenarios.checkpoints import daly_s, overhead, young_s
from goodput_scenarios.power_cap import drawn_above_w
from goodput_scenarios.scenario import Given, filled, missing, solved
from goodput_scenarios.scenarios import SCENARIOS
from goodput_scenarios.span import Span

CLOSE = pytest.approx


def answers(name, **given):
    """Return what a scenario says to these values, by label."""
    amounts = {field: Decimal(str(amount)) for field, amount in given.items()}
    scenario = SCENARIOS[name]
    return {a.label: a for a in solved(scenario, filled(scenario, {}, amounts))}


def exactly(answer):
    assert answer.span is not None, answer.worked
    assert answer.span.lo == answer.span.hi
    return float(answer.span.lo)


HUNDRED_H100 = {"old_gpus": 100, "old_power_w": 700, "new_gpus": 50, "new_power_w": 1000}
OF_WORK = {"use_ratio": "0.8", "cost_per_productive_gpu_h": 3}

SAVED_TOO_OFTEN = 300 / 1800 + 1800 / 172_800
SAVED_WELL = 300 / 7301.388889 + 7301.388889 / 172_800


@each({  # scenario, values, answers that are known exactly
    "half as many GPUs at a thousand watts save three tenths of the power": (
        "upgrade",
        {**HUNDRED_H100, "price_per_kwh": "0.10"},
        {"Power after": 50, "Change of power": -100 * 20 / 70, "Energy saved a year": 175_200,
         "Electricity saved a year": 17_520},
    ),
    "half as many GPUs may cost twice as much each": (
        "upgrade",
        {**HUNDRED_H100, "old_unit_cost": 30_000, "price_per_kwh": "0.12"},
        {"Capital-neutral up to": 2, "Capital-neutral unit price": 60_000,
         "Electricity saved a year": 21_024},
    ),
    "a cap at equal speed gives a quarter more work per watt": (
        "power-cap",
        {"cap_ratio": "0.8", "slowdown_ratio": 0},
        {"Work per watt at the limit": 1.25},
    ),
    # 140 W x 100 x 8,760 h = 122,640 kWh; 100 x 8,760 x 0.8 x 0.01 = 7,008 h
    "a cap that loses more work than it saves energy leaves less than nothing": (
        "power-cap",
        {"slowdown_ratio": "0.01", "gpus": 100, "held_power_w": 700, "power_limit_w": 700,
         "held_ratio": 1, "price_per_kwh": "0.1", **OF_WORK},
        {"Energy saved a year": 122_640, "Work lost a year": 7_008,
         "Left over a year": 12_264 - 21_024, "Work per watt at the limit": 1.2375},
    ),
    "halving a data wait of four tenths makes a job a quarter faster": (
        "halve-a-loss",
        {"in_jobs_gpu_h": 40, "held_gpu_h": 100},
        {"Time for the same work": 0.8, "Speed-up": 1.25},
    ),
    "half of a loss over a day is worth its price over a year": (
        "halve-a-loss",
        {"lost_gpu_h": 48, "held_gpu_h": 480, "capacity_gpu_h": 960, "window_h": 24,
         "price_per_gpu_h": 2},
        {"Goodput gained": 2.5, "GPU-hours gained a year": 8_760, "Worth a year": 17_520},
    ),
    "a hundred nodes of eight GPUs need more than most central stores give": (
        "feed",
        {"gpus": 800, "nodes": 100, "feed_mb_per_gpu_s": 200, "store_gb_per_s": 100},
        {"Input that all GPUs need": 160, "Share of the store": 160,
         "GPUs that the store can feed": 500},
    ),
    "a terabyte of shards is on each node in minutes": (
        "feed",
        {"nodes": 100, "dataset_gb": 100_000, "store_gb_per_s": 160},
        {"Shards on each node": 1000, "Time to write them": 200, "Time to read the data set": 625},
    ),
    "workers and the batches that they prefetch take memory": (
        "feed",
        {"gpus": 8, "nodes": 1, "workers_per_gpu": 8, "batch_mb": 500, "memory_gb": 256},
        {"Memory of loaders on a node": 64, "Share of free memory": 25},
    ),
    "synthetic input shows what the real one costs": (
        "feed",
        {"real_per_s": 70, "synthetic_per_s": 100},  # W04, W05
        {"Time that input costs": 30, "With more workers": 0.85 / 0.7, "Without stalls": 95 / 70},
    ),
    "saving too often costs GPU-hours and dollars": (
        "checkpoints",
        {"save_s": 300, "mtbf_s": 86_400, "interval_s": 1500, "gpus": 64, "price_per_gpu_h": 2},
        {"Lost now": 100 * SAVED_TOO_OFTEN, "Lost at the best interval": 100 * SAVED_WELL,
         "Won a year": 64 * 8760 * (SAVED_TOO_OFTEN - SAVED_WELL),
         "Worth a year": 2 * 64 * 8760 * (SAVED_TOO_OFTEN - SAVED_WELL)},
    ),
})  # fmt: skip
def test_worked_figures(name, values, expected):
    found = answers(name, **values)
    assert {label: exactly(found[label]) for label in expected} == CLOSE(expected)


@each(
    # 1,000,000 / (17,520 + 25 x 8,760 x 0.8 x 3) x 12: within two years
    ({"speed_up": "2.5"}, 12 * 1_000_000 / (17_520 + 525_600), ""),
    ({"speed_up": "2.5", "resale_cost": 10_000}, 0, ""),
    ({"speed_up": "2.5", "use_ratio": "0.05"}, None, "= 238.24 months: beyond 60 of life"),
    ({"speed_up": "2.5", "use_ratio": "0"}, None, "= 684.93 months: beyond 60 of life"),
    ({"speed_up": "1.5"}, None, "never pays back"),
)
def test_an_upgrade_pays_back_by_the_work_that_it_adds(given_, months, worked):
    usual = {**HUNDRED_H100, **OF_WORK, "price_per_kwh": "0.10", "new_unit_cost": 20_000}

    payback = answers("upgrade", **usual | given_)["Payback"]

    if months is None:
        assert payback.span is None
    else:
        assert exactly(payback) == CLOSE(months)
    assert worked in payback.worked


def test_what_may_be_more_or_less_gives_a_span():
    """New GPUs may draw as small a share of their limit as the old ones; a loss may be larger."""
    found = answers("upgrade", **{**HUNDRED_H100, "old_power_w": 350}, power_limit_w=700)
    lost = Given(Span(Decimal(10), Decimal(30)), "measured", "marts.ledger_by_category")
    halve = SCENARIOS["halve-a-loss"]
    (back, *_) = solved(halve, filled(halve, {"lost_gpu_h": lost}, {}))

    assert found["Power after"].span == Span(Decimal(25), Decimal(50))
    assert back.span == Span(Decimal(5), Decimal(15))
    assert "5.0 to 15.0" in back.worked


@pytest.mark.parametrize(("drawn_w", "saved_w"), [(500, (0, 100)), (700, (140, 140))])
def test_a_cap_saves_what_is_drawn_above_it_and_above_what_is_drawn_maybe_nothing(drawn_w, saved_w):
    drawn = drawn_above_w(Span.of(drawn_w), Span.of(700), Span.of("0.8"))
    assert drawn == Span(*map(Decimal, saved_w))


def test_young_and_daly_give_the_published_intervals():
    # Daly 2006, section 4: a dump of 5 minutes and a failure a day
    save, mtbf = Decimal(300), Decimal(86_400)

    assert float(young_s(save, mtbf)) == CLOSE(7200)
    # 7200 x (1 + sqrt(300 / 172800) / 3 + 300 / (18 x 86400)) - 300
    assert float(daly_s(save, mtbf)) == CLOSE(7001.389, abs=1e-3)
    # saves longer than twice the time between failures are spaced by it
    assert daly_s(Decimal(100), Decimal(50)) == 50


@given(
    save=strategies.decimals(1, 600, places=3),
    ratio=strategies.integers(20, 100_000),
    factor=strategies.decimals("0.1", 10, places=3),
)
def test_no_other_interval_loses_much_less_than_dalys(save, ratio, factor):
    mtbf = save * ratio
    best = daly_s(save, mtbf)
    assert overhead(best, save, mtbf) <= overhead(best * factor, save, mtbf) * Decimal("1.02")


def test_a_present_interval_that_loses_no_more_is_as_good():
    found = answers("checkpoints", save_s="3.091", mtbf_s=140, interval_s="26.92", gpus=4)

    best = found["Lost at the best interval"]
    assert best.span == found["Lost now"].span
    assert best.worked.endswith("; the present interval is as good")
    assert found["Best time between saves (Daly)"].worked.endswith("is as good")
    assert exactly(found["Won a year"]) == 0


def test_less_than_a_day_gives_no_yearly_figure():
    found = answers(
        "halve-a-loss", lost_gpu_h="0.0929", held_gpu_h=1, capacity_gpu_h=1, window_h="0.0923",
        price_per_gpu_h=2,
    )  # fmt: skip

    for label in ("GPU-hours gained a year", "Worth a year"):
        assert found[label].span is None
        assert "less than a day" in found[label].worked
    assert found["Goodput gained"].worked == "0.04645 / 1.0 x 100 = 4.645 points"


test_sums_show_two_digits_of_what_is_small = gives(
    lambda value, decimals: f"{Span.of(value):{decimals}}",
    ("0.0417", 1, "0.0417"), ("0.092874321", 1, "0.092874"), ("26.9154", 0, "26.915"),
    ("1800.00", 0, "1,800"), ("0.5", 0, "0.50"), ("0.025", 4, "0.0250"), ("5", 0, "5"),
    ("0", 1, "0.0"),
)  # fmt: skip


def test_the_readmes_upgrade_gives_all_that_no_ledger_measures():
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall("^goodput what-if upgrade .*", readme, re.MULTILINE)
    amounts = {name: Decimal(amount) for name, amount in re.findall(r"--set (\w+)=(\S+)", line)}

    lacking = missing(SCENARIOS["upgrade"], filled(SCENARIOS["upgrade"], {}, amounts))

    assert {field.name for field in lacking} == {
        *("old_gpus", "old_power_w", "power_limit_w", "price_per_kwh", "use_ratio"),
        "cost_per_productive_gpu_h",
    }


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_field_feeds_a_formula_and_an_unknown_site_is_asked_for_all_but_assumptions(name):
    scenario = SCENARIOS[name]
    fields = {field.name for field in scenario.fields}
    used = {need for formula in scenario.formulas for need in formula.needs}
    asked_for = [field.name for field in missing(scenario, filled(scenario, {}, {}))]

    assert used <= fields
    names = [one.name for one in (*scenario.fields, *scenario.formulas) if one.name]
    assert len(set(names)) == len(names), "each has a name of its own"
    assert fields - used <= {"power_limit_w"}  # narrows a bound where it is known
    assert asked_for == [field.name for field in scenario.fields if field.assumed is None]

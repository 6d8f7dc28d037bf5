"""The statement: worked example 3 of the accounting rules, to the cent, and its edge."""

from datetime import date
from decimal import Decimal

import polars as pl
import pytest
from tests.queries.conftest import START_MS, built_once

from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.amounts.rows import in_cents
from goodput_billing.statement.closing import computed
from goodput_billing.statement.days import Day

HOUR_S = 3_600
DAY = Day(date(2027, 1, 15), "UTC", START_MS, START_MS + 24 * HOUR_S * 1000)


def rising(kwh, until_h=24):
    """Return a day of an energy counter that rises evenly until an hour, and no more."""
    seconds = range(0, 24 * HOUR_S + 1, 600)
    return [(s, 1e9 + kwh * 3.6e6 * min(s / (until_h * HOUR_S), 1)) for s in seconds]


def load_node(evidence):
    """Load a node of 8 H100, the seventh of which has a 3g instance, with its prices."""
    evidence.node("n", 8)
    evidence.instance("n#6", slurm_index=6)
    evidence.watched(24 * HOUR_S)
    evidence.add("rates", gpu_model="H100", price_per_gpu_h=Decimal(2), cluster=None)
    evidence.tariff("0.15", "1.4", cluster=None)


@built_once
def example_3(node):
    """Load team A on GPUs 0-5 for 12 h and of team B on the instance for 24 h."""
    load_node(node)
    node.job("1", 0, 12 * HOUR_S, ["n"], 6, account="A", user_name="ann", gpu_type="h100")
    node.job("2", 0, 24 * HOUR_S, ["n"], 1, account="B", user_name="bob", gpu_type="3g.40gb")
    for gpu in range(6):
        node.energy(f"c/n#{gpu}", rising(8, until_h=12))
    node.energy("c/n#6", rising(7))
    node.energy("c/n#7", rising(5))


def sums(frame, column):
    """Return a column by account and line."""
    key = pl.coalesce("team", "line")
    return dict(frame.drop_nulls(column).group_by(key).agg(pl.col(column).sum()).rows())


def test_example_3_shares_idle_time_in_proportion_to_direct_cost_to_the_cent(example_3):
    exact = computed(example_3.store, DAY, Policy("proportional"))

    # the ledger counts whole milliseconds: 3/7 of a day is short of a seventh of one
    for name, near in {
        "direct_cost": {"A": 144, "B": 20.571429, "idle": 219.428571},
        "idle_share_cost": {"A": 192, "B": 27.428571, "idle": -219.428571},
        "electricity_cost": {"A": 11.73375, "B": 0.86625, "idle": 0},
    }.items():
        found = {of: float(cost) for of, cost in sums(exact, name).items()}
        assert found == pytest.approx(near, abs=2e-6), name

    billed = in_cents(exact)
    costs = {"A": Decimal("347.73"), "B": Decimal("48.87"), "idle": Decimal(0)}
    assert sums(billed, "total_cost") == costs
    assert sum(billed["total_cost"]) == Decimal("396.60")
    assert sum(billed["energy_mj"]) == 60 * 3_600_000_000
    assert sum(billed["gpu_ms"]) == 192 * 3_600_000


def test_what_nobody_used_nobody_carries(evidence):
    """The edge of example 3: all weights are 0, and the idle cost must not vanish."""
    node = evidence
    load_node(node)
    node.job("cpu-only", 0, 1, ["n"], 0)  # without a scheduler the activity would be somebody's
    for gpu in range(8):
        node.energy(f"c/n#{gpu}", rising(7.5))
    node.store.build()

    for idle in ("proportional", "uniform", "by_quota"):
        billed = in_cents(computed(node.store, DAY, Policy(idle)))
        assert set(billed["line"]) == {"idle"}
        assert sum(billed["total_cost"]) == Decimal("396.60")

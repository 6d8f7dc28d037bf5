"""A statement of time whose owner is inferred, and of allocated time on no known GPU."""

from decimal import Decimal

import polars as pl
import pytest
from msgspec.structs import replace as change
from tests.queries.conftest import START, built_once, each, steps

from goodput_billing.render.focus import focus
from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.closing import computed
from goodput_billing.statement.days import day_of
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement

HOUR_S = 3_600
DAY = day_of(START.date(), StatementSettings())


@built_once
def workstation(evidence):
    """Give two GPUs at 3 an hour, one at work for an hour of two, for a job that sends events."""
    gpus = [{"gpu_uuid": f"n-{i}", "gpu_index": i} for i in (0, 1)]
    evidence.add("gpus", *gpus, source="nvml", node="n", gpu_model="h100", valid_from_at=0)
    for gpu, last in (("n-0", HOUR_S), ("n-1", 600)):
        works = lambda second, last=last: 0.9 * (second <= last)  # noqa: E731 -- of one job
        evidence.readings(gpu, range(0, 2 * HOUR_S + 1, 60), "nvml", engine_active_ratio=works)
    reported = [{"t": 0, "event": "job.start"}, *steps(1, 60, 0, 60.0)]
    evidence.events("train", reported, attempt=None, host="n", gpu_uuid="n-0")
    evidence.add("rates", gpu_model="h100", price_per_gpu_h=Decimal(3), cluster=None)


def amounts(rows):
    """Return GPU-hours and amount by line."""
    found = rows.group_by("line").agg(pl.col("gpu_ms").sum(), pl.col("direct_cost").sum())
    return {line: (round(gpu_ms / 3_600_000, 6), round(float(cost), 6))
            for line, gpu_ms, cost in found.iter_rows()}  # fmt: skip


INFERRED_H = 1 + 600 / HOUR_S
IDLE = {"idle": (4 - INFERRED_H, 3 * (4 - INFERRED_H))}


@each({
    "not charged": (False, {**IDLE, "inferred": (INFERRED_H, 0)}),
    "where a site charges it": (True, {**IDLE, "inferred": (INFERRED_H, 3 * INFERRED_H)}),
    "closed before ownership was inferred": (None, {"idle": (4, 12)}),
})  # fmt: skip
def test_cost_of_inferred_time(workstation, charges, expected):
    policy = Policy() if charges is False else Policy(charge_inferred=charges)
    found = amounts(computed(workstation.store, DAY, policy))

    assert found.keys() == expected.keys()
    for line, amount in expected.items():
        assert found[line] == pytest.approx(amount, abs=1e-5)


def test_a_statement_with_inferred_time_balances_and_shares_idle_cost(workstation):
    made = statement(workstation.store, DAY.date, StatementSettings())

    (balance,) = made.balance.to_dicts()
    assert balance["inferred_ms"] == 4_200_000
    assert balance["held_ms"] == balance["ledger_held_ms"] == 4_200_000
    assert balance["statement_ms"] == balance["ledger_ms"] == balance["capacity_ms"]
    assert made.differences.is_empty()
    rows = computed(workstation.store, DAY, Policy(idle="proportional", charge_inferred=True))
    carried = dict(rows.group_by("line").agg(pl.col("idle_share_cost").sum()).iter_rows())
    assert carried["inferred"] == -carried["idle"] > 0


def test_unplaced_time_is_charged_beside_the_capacity(evidence):
    evidence.node("a", 2)
    evidence.add("rates", gpu_model="h100", price_per_gpu_h=Decimal(3), cluster=None)
    evidence.job("1", 0, 2 * HOUR_S, [], 4)
    evidence.job("2", 0, HOUR_S, ["a"], 2)
    evidence.build()
    made = statement(evidence.store, DAY.date, change(StatementSettings(), lateness_h=0))

    assert amounts(made.rows)["unplaced"] == (8, 24)
    (balance,) = made.balance.to_dicts()
    assert balance["statement_ms"] == balance["capacity_ms"]
    assert balance["scheduler_held_ms"] == balance["held_ms"] + balance["unplaced_ms"]
    assert "on no known GPU, 8.00 h100 GPU-Hours" in focus(made).decode()

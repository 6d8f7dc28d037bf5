"""A statement made of rows, without a database."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from goodput_billing.delivery.archive import PastStatement
from goodput_billing.statement.account_measures import COLUMNS as ACCOUNT_COLUMNS
from goodput_billing.statement.amounts.charges import charges
from goodput_billing.statement.amounts.rows import frame_of, in_cents
from goodput_billing.statement.amounts.summary import CoveredDay, Days, accounts, totals
from goodput_billing.statement.budgets import SCHEMA as BUDGETS
from goodput_billing.statement.carbon import COLUMNS as CARBON_COLUMNS
from goodput_billing.statement.days import day_of
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import Statement

HOSTILE = "=cmd|' /C calc'!A0 <script>alert(\"x\")</script> & |, 漢字"


def line(kind, gpu_ms, team=None, **more):
    """Return a row of `marts.statement_lines`, at 2 dollars a GPU-hour."""
    row: dict[str, Any] = {
        "line": kind, "cluster": "c", "team": team, "user_name": team and f"u-{team}",
        "run_key": team and f"c/{team}-1", "run_id": team and f"{team}-1", "job_name": team,
        "partition": team and "gpu", "qos": team and "normal", "gpu_model": "NVIDIA H100",
        "mig_profile": None, "list_price_per_gpu_h": Decimal("2.500000"),
        "factor": Decimal("0.800000"), "price_per_gpu_h": Decimal("2.000000"), "job_runs": 1,
        "gpu_ms": gpu_ms, "productive_ms": 0, "other_use_ms": 0, "own_waste_ms": 0,
        "platform_waste_ms": 0, "unsettled_ms": gpu_ms if kind == "usage" else 0, "idle_held_ms": 0,
        "lost_ms": 0, "credit_ms": 0, "energy_mj": None, "measured_ms": None,
        "metered_mj_price": None, "untariffed_mj": 0, "wall_mj": None,
    }  # fmt: skip
    return row | more


def line_of_no_run(kind, gpu_ms, team=None, price="2", **more):
    """Return the same of no run, at one price that nothing changes; None: without a price."""
    cost = None if price is None else Decimal(price)
    of_no_run = dict.fromkeys(("run_key", "run_id", "job_name", "partition", "qos"))
    prices = {"list_price_per_gpu_h": cost, "price_per_gpu_h": cost}
    factor = None if price is None else Decimal(1)
    of = {**of_no_run, **prices, "factor": factor, "gpu_model": "H100", **more}
    return line(kind, gpu_ms, team, **of)


def made_of(rows, policy, **settings):
    """Return an open statement of these lines."""
    chosen = StatementSettings(**settings)
    day = day_of(date(2026, 11, 19), chosen)
    billed = in_cents(frame_of(charges(rows, policy))).with_columns(
        pl.lit(0, pl.Int32).alias("correction"),
        *(pl.lit(None, pl.Float64).alias(n) for n in (*CARBON_COLUMNS, *ACCOUNT_COLUMNS)),
    )
    days = Days(None, None, [CoveredDay(totals(billed), {"c": day.to_ms - day.from_ms})])
    return Statement(
        day=day, settings=chosen, policy=policy, bookings=[], evidence_ms=day.to_ms,
        closes_ms=day.to_ms + 6 * 3_600_000, was_corrected=False, is_proven=True, rows=billed,
        accounts=accounts(billed, days), budgets=pl.DataFrame(schema=BUDGETS),
        losses=pl.DataFrame(), balance=pl.DataFrame(), differences=pl.DataFrame(),
        unmatched=pl.DataFrame(),
    )  # fmt: skip


@pytest.fixture
def lines():
    """Return accounts, one of a hostile name, one without a price; credits, energy, idle time."""
    hour = 3_600_000
    return [
        line("usage", 1_234_567_891, "nlp", credit_ms=hour, energy_mj=5 * 10**12,
             metered_mj_price=Decimal(5 * 10**12) * Decimal("0.21")),
        line("usage", 7_000_001, HOSTILE),
        line("usage", 70 * hour, "vision", qos="scavenger", mig_profile="3g.40gb"),
        line("usage", hour, "new", gpu_model="B200", price_per_gpu_h=None,
             list_price_per_gpu_h=None, factor=None),
        line("idle", 100 * hour),
        line("not_available", hour),
    ]  # fmt: skip


@pytest.fixture
def make():
    return made_of


def past_statement(when, **more):
    """Return the entry of a closed day in the index of statements, delivered to nobody."""
    usual = {
        "zone": "UTC", "is_closed": True, "corrections": 0, "version": "0-a", "status": "Closed.",
        "made_at": datetime(2026, 11, 20, 7, tzinfo=UTC), "total_cost": Decimal("1234.50"),
        "accounts_cost": Decimal("1000.00"), "capacity_ms": 36_000_000, "held_ms": 18_000_000,
        "productive_ms": 9_000_000,
    }  # fmt: skip
    return PastStatement(date=when, **usual | more)

"""A closed day is what it was; late evidence adds rows."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from msgspec.structs import replace as change
from tests.queries.conftest import Evidence, built_after, built_file, copy_of
from tests.queries.loaders import steady

from goodput_billing.render.tables import tables
from goodput_billing.statement.amounts.rows import AMOUNTS, KEYS, QUANTITIES
from goodput_billing.statement.closing import computed
from goodput_billing.statement.days import day_of
from goodput_billing.statement.refused_days import refuse_other_currencies
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.errors import QueryError, StoreError
from goodput_queries.evidence.retention import Retention, drop_old

HOUR_S = 3_600
WHEN = date(2027, 1, 15)
NEXT = WHEN + timedelta(days=1)
SETTINGS = StatementSettings(lateness_h=30, idle_policy="proportional")


@built_file
def built_fleet(evidence):
    """Give evidence from 08:00 of the first day to 06:00 of the third, with prices and budgets.

    Of four GPUs with two jobs, one of which runs on over midnight; and of one without a price.
    """
    evidence.node("a", 4)
    evidence.node("b", 1, model="b200", watched=46 * HOUR_S)
    evidence.job("1", 0, 5 * HOUR_S, ["a"], 2, account="A", user_name="ann")
    evidence.job("2", 10 * HOUR_S, 20 * HOUR_S, ["a"], 1, account="B", user_name="bob")
    evidence.job("3", HOUR_S, 2 * HOUR_S, ["b"], 1, account="B")
    evidence.add("rates", gpu_model="H100", price_per_gpu_h=Decimal(2), cluster=None)
    evidence.add("budgets", account="A", cost_per_month=Decimal(900))
    evidence.add("budgets", account="B", cost_per_month=Decimal(20), cluster=None)


fleet = copy_of("built_fleet")
first_closed = built_after("built_fleet", lambda e: statement(e.store, WHEN, SETTINGS))
closed = copy_of("first_closed")


@pytest.fixture
def first(first_closed):
    return first_closed[1]


def load_late_job(fleet, job_id, start_h, end_h, gpus, account):
    """Load a job of the closed day whose record came late."""
    start, end = start_h * HOUR_S, end_h * HOUR_S
    fleet.job(job_id, start, end, ["a"], gpus, account=account, user_name="eve")
    fleet.store.build()


def by_account(made):
    return dict(made.accounts.select("account", "total_cost").rows())


def test_a_day_is_closed_once_evidence_reaches_the_lateness_beyond_its_end_or_by_hand(fleet, first):
    """The first ends 16 hours after the start, and 30 hours later the evidence ends.

    By hand a day that is over is: the third, of which it reaches to 06:00, until it goes on.
    """
    assert first.is_closed
    assert not statement(fleet.store, WHEN, change(SETTINGS, lateness_h=30.1)).is_closed
    when = NEXT + timedelta(days=1)
    noon, later = (datetime(2027, 1, day, 12, tzinfo=UTC) for day in (17, 19))
    assert not statement(fleet.store, when, SETTINGS, closes_now=True, now=noon).is_closed

    made = statement(fleet.store, when, SETTINGS, closes_now=True, now=later)
    fleet.state("*", "up", 46 * HOUR_S, 70 * HOUR_S)
    fleet.build()
    corrected = statement(fleet.store, when, SETTINGS, now=later)

    assert made.is_closed
    assert made.bookings[0].evidence_ms < made.day.to_ms
    assert corrected.was_corrected


def test_a_closed_day_computed_again_is_proven_unchanged(closed, first):
    """The bytes of its files: test_cli_report."""
    again = statement(closed.store, WHEN, SETTINGS)

    assert [b.number for b in again.bookings] == [0]
    assert not again.was_corrected
    assert again.rows.rows() == first.rows.rows()


@pytest.fixture(scope="module")
def corrected(module_store, first_closed):
    """Give two corrections of a closed day by late evidence, after a new price and policy."""
    evidence = Evidence(module_store(copy_of=first_closed[0]))
    store, new_policy = evidence.store, StatementSettings(idle_policy="none")
    evidence.add("rates", gpu_model="H100", price_per_gpu_h=Decimal(9), cluster=None)
    load_late_job(evidence, "9", 6, 9, 4, "C")
    once, again = (statement(store, WHEN, new_policy) for _ in range(2))
    assert not again.was_corrected
    load_late_job(evidence, "10", 9.5, 9.7, 3, "A")
    twice = statement(store, WHEN, new_policy)
    days = (computed(store, day_of(when, SETTINGS), twice.policy) for when in (WHEN, NEXT))
    return (once, twice, *days)


def test_late_evidence_makes_corrections_that_add_up_and_leaves_what_was_billed(corrected, first):
    once, twice, fresh, _ = corrected

    assert once.was_corrected
    assert [booking.number for booking in once.bookings] == [0, 1]
    assert [booking.number for booking in twice.bookings] == [0, 1, 2]
    for made in (once, twice):
        assert made.rows.filter(pl.col("correction") == 0).rows() == first.rows.rows()
        assert made.bookings[0].digest == first.bookings[0].digest
    exact = pl.concat([booking.exact for booking in twice.bookings]).group_by(KEYS)
    summed = exact.agg(pl.col(*QUANTITIES, *AMOUNTS).sum()).filter(pl.col("gpu_ms") != 0).sort(KEYS)
    columns = [*KEYS, "gpu_ms", "job_runs"]
    assert summed.select(columns).rows() == fresh.sort(KEYS).select(columns).rows()
    for name in AMOUNTS:
        apart = summed[name] - fresh.sort(KEYS)[name].fill_null(0)
        assert apart.cast(pl.Float64).abs().max() < 1e-8
    assert twice.total_cost == Decimal("128.00")  # all 64 GPU-hours that have a price, at 2
    assert by_account(twice)["C"] > 0


def test_new_prices_and_policies_are_those_of_later_days(corrected):
    """Late evidence of a closed day too is charged at its prices, by its policy."""
    made, *_, next_day = corrected

    assert made.policy.idle == "proportional"
    of_c = made.rows.filter(pl.col("team") == "C", line="usage")
    assert of_c["direct_cost"].to_list() == [Decimal("24.00")]
    for row in made.rows.iter_rows(named=True):
        known = [row[name] for name in AMOUNTS if row[name] is not None]
        assert row["total_cost"] is None or row["total_cost"] == sum(known)
    assert sum(by_account(made).values()) == made.total_cost
    assert set(next_day["price_per_gpu_h"].drop_nulls()) == {Decimal(9)}


def test_a_day_without_evidence_or_with_prices_of_another_currency_is_refused(fleet):
    with pytest.raises(QueryError, match="no evidence of 2027-03-01"):
        statement(fleet.store, date(2027, 3, 1), SETTINGS)
    euros = {"price_per_gpu_h": Decimal(3), "currency": "EUR", "cluster": None}
    fleet.add("rates", gpu_model="H100", valid_from_at=40 * HOUR_S, **euros)
    refuse_other_currencies(fleet.store, day_of(WHEN, SETTINGS), "USD")

    fleet.add("rates", gpu_model="H200", **euros)
    fleet.add("budgets", account="A", cost_per_month=Decimal(9), currency="CHF", cluster=None)

    reported = "in USD, but there are budgets in CHF, rates in EUR; nothing is converted"
    with pytest.raises(QueryError, match=reported):
        statement(fleet.store, WHEN, SETTINGS)
    assert fleet.store.read("select count(*) from billing.statement_days").item() == 0


def test_a_closed_day_keeps_its_currency_and_is_not_compared_with_another(closed):
    in_euros = change(SETTINGS, currency="EUR")
    following = statement(closed.store, NEXT, in_euros)

    assert statement(closed.store, WHEN, in_euros).policy.currency == "USD"
    assert following.policy.currency == "EUR"
    assert following.accounts["yesterday_cost"].null_count() == following.accounts.height
    assert following.accounts["month_cost"].sum() == following.total_cost


def test_time_without_a_price_is_listed_and_becomes_a_correction_once_it_has_one(closed, first):
    unpriced = first.unmatched.filter(pl.col("kind") == "allocated without a price")
    assert unpriced["gpu_ms"].to_list() == [HOUR_S * 1000]

    closed.add("rates", gpu_model="B200", price_per_gpu_h=Decimal(7), cluster=None)
    closed.store.build()
    after = statement(closed.store, WHEN, SETTINGS)

    assert after.was_corrected
    assert after.total_cost - first.total_cost == 16 * 7


def test_a_closing_that_was_cut_off_is_done_again(closed, first):
    """The rows are there, the day is not: it is still open, and the next command closes it.

    Rows that were meddled with are refused.
    """
    with closed.store.writing() as cursor:
        cursor.execute("delete from billing.statement_days")
        cursor.execute("delete from state.ingested where table_name = 'statement_days'")

    again = statement(closed.store, WHEN, SETTINGS)

    assert again.rows.rows() == first.rows.rows()
    billed = closed.read("select count(*) from billing.statement_rows").item()
    assert billed == first.rows.height
    with closed.store.writing() as cursor:
        cursor.execute("update billing.statement_rows set direct_billed_cost = 1 where team = 'A'")
    with pytest.raises(StoreError, match="not what was billed"):
        statement(closed.store, WHEN, SETTINGS)


def test_days_beside_it_and_the_month_so_far(fleet):
    """Evidence begins at 08:00 of the first day: two thirds of it are known."""
    _, made = (statement(fleet.store, when, StatementSettings()) for when in (WHEN, NEXT))

    assert made.known_parts == {"The day before": Fraction(2, 3)}
    (note,) = [t.note for t in tables(made, lines=1) if t.title == "Against other days"]
    assert note == "The day before is known for 67 % of its hours."
    (month,) = [t.rows for t in tables(made, lines=1) if t.title == "January so far"]
    assert [row[:2] for row in month] == [["A", "c"], ["B", "all"]], "the only one is named once"
    rows = {row["account"]: row for row in made.accounts.iter_rows(named=True)}
    of_b = [rows["B"][f"{name}_cost"] for name in ("total", "yesterday", "week_ago")]
    assert (of_b, rows["A"]["total_cost"]) == ([Decimal(8), Decimal(12), None], 0)
    (budget,) = made.budgets.filter(pl.col("account") == "B").to_dicts()
    expected = {
        "month_cost": Decimal(20), "budget_cost": Decimal(20), "spent_ratio": 1,
        "forecast_cost": Decimal("372.00"),  # 20 in 40 of 744 hours
        "forecast_low_cost": Decimal("254.67"),  # 704 hours like the second day
        "forecast_high_cost": Decimal("548.00"),  # or like the first
        "covered_h": 40, "basis": "40.0 covered hours",
    }  # fmt: skip
    assert {name: budget[name] for name in expected} == expected


def test_a_day_whose_readings_were_dropped_stands_as_billed(fleet):
    fleet.energy("c/a#0", steady(10 * HOUR_S - 600, 300, 600))
    fleet.samples("a#0", fleet.every(70 * HOUR_S, 72 * HOUR_S, 600), lambda _: True)
    fleet.state("*", "up", 0, 72 * HOUR_S)
    fleet.store.build()
    before = statement(fleet.store, WHEN, SETTINGS)
    assert before.rows["energy_mj"].sum() > 0

    now = fleet.at(72 * HOUR_S)
    drop_old(fleet.store, Retention(samples_days=1), is_confirmed=True, now=now)
    fleet.store.build(is_full=True)
    after = statement(fleet.store, WHEN, SETTINGS)

    assert not after.is_proven
    assert after.rows.rows() == before.rows.rows()
    kept = fleet.store.read("select sum(energy_mj) from marts.statement_energy_hourly").item()
    assert kept == before.rows["energy_mj"].sum()


def test_a_day_with_billed_hours_is_refused_under_other_bounds_and_one_after_it_is_not(closed):
    store, now = closed.store, change(SETTINGS, lateness_h=0)
    for changed in (change(now, zone="Europe/Berlin"), change(now, day_starts_at="17:00")):
        billed = r"2027-01-15 00:00 to 2027-01-16 00:00 UTC\) billed\."
        with pytest.raises(QueryError, match=billed):
            statement(store, WHEN, changed)
    of_it = "select count(*) from billing.statement_days where from_at::date <= $1"
    assert store.read(of_it, [WHEN]).item() == 1
    assert statement(store, NEXT, change(now, zone="America/New_York")).is_closed
    assert statement(store, WHEN, now).is_closed

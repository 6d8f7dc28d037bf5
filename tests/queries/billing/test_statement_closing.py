"""A closed day is what it was; late evidence adds rows."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from msgspec.structs import replace as change
from tests.queries.conftest import Evidence

from goodput_billing.render import files
from goodput_billing.render.tables import tables
from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.amounts.rows import AMOUNTS, KEYS, QUANTITIES
from goodput_billing.statement.closing import computed
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.errors import QueryError, StoreError
from goodput_queries.evidence.retention import Retention, drop_old

HOUR_S = 3_600
WHEN = date(2027, 1, 15)
SETTINGS = StatementSettings(lateness_h=6, idle_policy="proportional")


@pytest.fixture(scope="module")
def built_fleet(new_store):
    """Load four GPUs and two jobs, one of which runs on over midnight."""
    evidence = Evidence(new_store())
    evidence.node("a", 4)
    evidence.watched(1)
    evidence.job("1", 0, 5 * HOUR_S, ["a"], 2, account="A", user_name="ann")
    evidence.job("2", 10 * HOUR_S, 20 * HOUR_S, ["a"], 1, account="B", user_name="bob",
                 submit=10 * HOUR_S)  # fmt: skip
    evidence.add("rates", gpu_model="H100", price_per_gpu_h=Decimal(2), cluster=None)
    return evidence.built()


@pytest.fixture
def fleet(new_evidence, built_fleet):
    return new_evidence(copy_of=built_fleet)


def watched_until(fleet, hours):
    fleet.state("*", "up", 0, hours * HOUR_S)
    fleet.store.build()


@pytest.fixture(scope="module")
def built_ended(new_store, built_fleet):
    """Give the same, with evidence up to 30 hours after the start: its first day can be closed."""
    evidence = Evidence(new_store(copy_of=built_fleet))
    evidence.state("*", "up", 0, 30 * HOUR_S)
    return evidence.built()


@pytest.fixture(scope="module")
def first_closed(new_store, built_ended):
    """Return the same file with its first day closed, and the statement of that day."""
    evidence = Evidence(new_store(copy_of=built_ended))
    made = statement(evidence.store, WHEN, SETTINGS)
    return evidence.built(), made


@pytest.fixture
def closed(new_evidence, first_closed):
    return new_evidence(copy_of=first_closed[0])


@pytest.fixture
def first(first_closed):
    return first_closed[1]


def late_job(fleet):
    """Load a job of the closed day whose record came late."""
    fleet.job(
        "9", 6 * HOUR_S, 9 * HOUR_S, ["a"], 4, account="C", user_name="eve", submit=6 * HOUR_S
    )
    fleet.store.build()


def by_account(made):
    return dict(made.accounts.select("account", "total_cost").rows())


@pytest.mark.parametrize(
    ("hours", "is_closed"),
    [(16 + 5.9, False), (16 + 6, True)],
    ids=["short of the lateness", "the lateness beyond its end"],
)
def test_a_day_is_open_until_evidence_reaches_beyond_its_end(fleet, hours, is_closed):
    watched_until(fleet, hours)  # a job runs until 20

    assert statement(fleet.store, WHEN, SETTINGS).is_closed == is_closed


@pytest.fixture
def fifteen_hours(evidence):
    """Give a cluster with an hour of evidence less than its first day has."""
    evidence.node("a", 1)
    evidence.watched(15 * HOUR_S)
    evidence.store.build()
    return evidence


def test_a_past_day_is_closed_by_hand_however_far_the_evidence_reaches(fifteen_hours):
    store = fifteen_hours.store
    noon, later = datetime(2027, 1, 15, 12, tzinfo=UTC), datetime(2027, 1, 17, tzinfo=UTC)
    unended = statement(store, WHEN, SETTINGS, closes_now=True, now=noon)

    made = statement(store, WHEN, SETTINGS, closes_now=True, now=later)
    watched_until(fifteen_hours, 40)
    corrected = statement(store, WHEN, SETTINGS, now=later)

    assert not unended.is_closed
    assert made.is_closed
    assert made.bookings[0].evidence_ms < made.day.to_ms
    assert corrected.was_corrected


@pytest.fixture(scope="module")
def two_days(new_store, built_fleet):
    """Give the statements of the first day and of the next, and a budget of B."""
    fleet = Evidence(new_store(copy_of=built_fleet))
    fleet.state("*", "up", 0, 60 * HOUR_S)
    fleet.add("budgets", account="B", cost_per_month=Decimal(20), cluster=None)
    fleet.store.build()
    return [statement(fleet.store, date(2027, 1, day), StatementSettings()) for day in (15, 16)]


def test_a_job_over_midnight_is_charged_to_each_day_its_part(two_days):
    held = [
        made.rows.filter((pl.col("team") == "B") & (pl.col("line") == "usage"))["gpu_ms"].sum()
        for made in two_days
    ]
    assert held == [6 * HOUR_S * 1000, 4 * HOUR_S * 1000]


def test_a_closed_day_computed_again_is_proven_unchanged(closed, first, tmp_path):
    files.write(first, tmp_path / "first", files.FORMATS)

    again = statement(closed.store, WHEN, SETTINGS)
    files.write(again, tmp_path / "again", files.FORMATS)

    assert [b.number for b in again.bookings] == [0]
    assert not again.was_corrected
    for path in sorted((tmp_path / "first").iterdir()):
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


@pytest.fixture
def corrected(closed):
    """Give the closed day with a correction, and its statement."""
    late_job(closed)
    return closed, statement(closed.store, WHEN, SETTINGS)


def test_late_evidence_makes_corrections_that_add_up_and_leaves_what_was_billed(corrected, first):
    closed, second = corrected

    assert second.was_corrected
    assert [booking.number for booking in second.bookings] == [0, 1]
    assert second.rows.filter(pl.col("correction") == 0).rows() == first.rows.rows()
    assert second.bookings[0].digest == first.bookings[0].digest
    assert not statement(closed.store, WHEN, SETTINGS).was_corrected

    closed.job("10", 9.5 * HOUR_S, 9.7 * HOUR_S, ["a"], 3, account="A", user_name="ann",
               submit=9.5 * HOUR_S)  # fmt: skip
    closed.build()
    corrected = statement(closed.store, WHEN, SETTINGS)

    fresh = computed(closed.store, corrected.day, corrected.policy)
    summed = (
        pl.concat([booking.exact for booking in corrected.bookings])
        .group_by(KEYS, maintain_order=True)
        .agg(pl.col(*QUANTITIES, *AMOUNTS).sum())
        .filter(pl.col("gpu_ms") != 0)
    )

    assert [b.number for b in corrected.bookings] == [0, 1, 2]
    columns = [*KEYS, "gpu_ms", "job_runs"]
    assert summed.select(columns).sort(KEYS).rows() == fresh.select(columns).sort(KEYS).rows()
    for name in AMOUNTS:
        apart = abs(
            (summed.sort(KEYS)[name] - fresh.sort(KEYS)[name].fill_null(0)).cast(pl.Float64)
        )
        assert apart.max() < 1e-8
    assert corrected.total_cost == Decimal("128.00")  # all 64 GPU-hours of the day, at 2
    assert by_account(corrected)["C"] > 0


def test_new_prices_and_policies_are_those_of_later_days(closed, first):
    """Late evidence of a closed day too is charged at its prices, by its policy."""
    closed.add("rates", gpu_model="H100", price_per_gpu_h=Decimal(9), cluster=None)
    late_job(closed)
    corrected = statement(closed.store, WHEN, StatementSettings(idle_policy="none"))

    assert corrected.policy.idle == "proportional"
    assert corrected.rows.filter(pl.col("correction") == 0).rows() == first.rows.rows()
    late = corrected.rows.filter((pl.col("team") == "C") & (pl.col("line") == "usage"))
    assert late["direct_cost"].to_list() == [Decimal("24.00")]
    for row in corrected.rows.iter_rows(named=True):
        known = [row[name] for name in AMOUNTS if row[name] is not None]
        assert row["total_cost"] is None or row["total_cost"] == sum(known)
    assert sum(by_account(corrected).values()) == corrected.total_cost
    next_day = statement(closed.store, date(2027, 1, 16), SETTINGS)
    assert set(next_day.rows["price_per_gpu_h"]) == {Decimal(9)}


def test_prices_of_another_currency_are_refused_and_nothing_is_written(built_ended, new_evidence):
    fleet = new_evidence(copy_of=built_ended)
    fleet.add("rates", gpu_model="H200", price_per_gpu_h=Decimal(3), currency="EUR", cluster=None)
    fleet.add("budgets", account="A", cost_per_month=Decimal(9), currency="CHF", cluster=None)

    reported = "in USD, but there are budgets in CHF, rates in EUR; nothing is converted"
    with pytest.raises(QueryError, match=reported):
        statement(fleet.store, WHEN, SETTINGS)

    assert fleet.store.read("select count(*) from billing.statement_days").item() == 0


def test_prices_of_another_currency_that_hold_on_other_days_do_not_matter(fleet):
    fleet.add(
        "rates", gpu_model="H100", price_per_gpu_h=Decimal(3), currency="EUR",
        valid_from_at=40 * HOUR_S, cluster=None,
    )  # fmt: skip
    watched_until(fleet, 16 + 6)

    assert statement(fleet.store, WHEN, SETTINGS).is_closed


def test_a_closed_day_keeps_its_currency_and_is_not_compared_with_another(closed):
    watched_until(closed, 16 + 30)
    in_euros = change(SETTINGS, currency="EUR")
    following = statement(closed.store, WHEN + timedelta(days=1), in_euros)

    assert statement(closed.store, WHEN, in_euros).policy.currency == "USD"
    assert following.policy.currency == "EUR"
    assert following.accounts["yesterday_cost"].null_count() == following.accounts.height
    assert following.accounts["month_cost"].sum() == following.total_cost


def test_time_without_a_price_is_listed_and_becomes_a_correction_once_it_has_one(fleet):
    fleet.node("b", 1, model="b200")
    fleet.job("3", HOUR_S, 2 * HOUR_S, ["b"], 1, account="B", submit=HOUR_S)
    watched_until(fleet, 30)
    before = statement(fleet.store, WHEN, SETTINGS)
    assert before.unmatched.filter(pl.col("kind") == "allocated without a price")[
        "gpu_ms"
    ].to_list() == [HOUR_S * 1000]

    fleet.add("rates", gpu_model="B200", price_per_gpu_h=Decimal(7), cluster=None)
    fleet.store.build()
    after = statement(fleet.store, WHEN, SETTINGS)

    assert after.was_corrected
    assert after.total_cost - before.total_cost == 16 * 7


def test_rows_that_were_meddled_with_are_refused(closed):
    with closed.store.writing() as cursor:
        cursor.execute("update billing.statement_rows set direct_billed_cost = 1 where team = 'A'")

    with pytest.raises(StoreError, match="not what was billed"):
        statement(closed.store, WHEN, SETTINGS)


def test_a_closing_that_was_cut_off_is_done_again(closed, first):
    """The rows are there, the day is not: it is still open, and the next command closes it."""
    with closed.store.writing() as cursor:
        cursor.execute("delete from billing.statement_days")
        cursor.execute("delete from state.ingested where table_name = 'statement_days'")

    again = statement(closed.store, WHEN, SETTINGS)

    assert again.rows.rows() == first.rows.rows()
    billed = closed.read("select count(*) from billing.statement_rows").item()
    assert billed == first.rows.height


def test_days_beside_it_and_the_month_so_far(two_days):
    _, made = two_days

    rows = {row["account"]: row for row in made.accounts.iter_rows(named=True)}
    assert rows["B"]["total_cost"] == Decimal("8.00")
    assert rows["B"]["yesterday_cost"] == Decimal("12.00")
    assert rows["B"]["week_ago_cost"] is None
    assert rows["A"]["total_cost"] == 0
    (budget,) = made.budgets.filter(pl.col("account") == "B").to_dicts()
    assert (budget["month_cost"], budget["budget_cost"]) == (Decimal(20), Decimal(20))
    assert budget["forecast_cost"] == Decimal("372.00")  # 20 in 40 of 744 hours
    assert budget["forecast_low_cost"] == Decimal("254.67")  # 704 hours like the second day
    assert budget["forecast_high_cost"] == Decimal("548.00")  # or like the first
    assert (budget["covered_h"], budget["basis"]) == (40, "40.0 covered hours")
    assert budget["spent_ratio"] == 1


def test_a_day_that_is_known_in_part_says_so_and_counts_so_in_the_forecast(closed):
    """Evidence begins at 08:00 of the first day and ends at 06:00 of the third."""
    watched_until(closed, 16 + 30)

    made = statement(closed.store, WHEN + timedelta(days=1), SETTINGS)

    assert made.known_parts == {"The day before": Fraction(2, 3)}
    assert set(made.budgets["covered_h"]) == {40}
    (note,) = [t.note for t in tables(made, lines=1) if t.title == "Against other days"]
    assert note == "The day before is known for 67 % of its hours."


def test_a_budget_of_the_only_cluster_is_reported_once(fleet):
    fleet.add("budgets", account="A", cost_per_month=Decimal(900))
    watched_until(fleet, 16)

    made = statement(fleet.store, WHEN, SETTINGS)

    (month,) = [t.rows for t in tables(made, lines=1) if t.title == "January so far"]
    assert [row[:2] for row in month] == [["A", "c"], ["B", "all"]]


def test_a_day_without_evidence_is_no_statement_of_zeros(fleet):
    with pytest.raises(QueryError, match="no evidence of 2027-03-01"):
        statement(fleet.store, date(2027, 3, 1), SETTINGS)


def test_a_job_that_still_runs_is_charged_as_far_as_evidence_reaches(evidence):
    evidence.node("a", 1)
    evidence.add("rates", price_per_gpu_h=Decimal(2), cluster=None)
    evidence.job("1", 0, None, ["a"], 1, "RUNNING", account="A")
    evidence.watched(3 * HOUR_S)
    evidence.store.build()

    made = statement(evidence.store, WHEN, StatementSettings())

    assert not made.is_closed
    assert by_account(made) == {"A": Decimal("6.00")}


def test_policy_none_leaves_idle_time_on_its_own_line(closed, first):
    exact = computed(closed.store, first.day, Policy())

    assert set(exact.filter(pl.col("line") == "idle")["idle_share_cost"]) == {0}


@pytest.fixture
def billed_ten_days_ago(fleet):
    """Give a billed day with readings, ten days before the latest, and its statement."""
    fleet.add(
        "gpu_samples",
        *({"ts": s, "energy_j": 1e6 + 300.0 * s} for s in range(0, 10 * HOUR_S, 600)),
        source="dcgm", gpu_uuid="c/a#0", gpu_instance="", engine_active_ratio=0.5, is_flagged=False,
    )  # fmt: skip
    end_s = 24 * 10 * HOUR_S
    fleet.samples("a#0", fleet.every(end_s - 2 * HOUR_S, end_s, 600), lambda _: True)
    watched_until(fleet, 24 * 10)
    return fleet, statement(fleet.store, WHEN, SETTINGS)


def test_a_day_whose_readings_were_dropped_stands_as_billed(billed_ten_days_ago):
    fleet, before = billed_ten_days_ago
    assert before.rows["energy_mj"].sum() > 0

    now = fleet.at(24 * 10 * HOUR_S)
    drop_old(fleet.store, Retention(samples_days=3), is_confirmed=True, now=now)
    fleet.store.build(is_full=True)
    after = statement(fleet.store, WHEN, SETTINGS)

    assert not after.is_proven
    assert after.rows.rows() == before.rows.rows()
    kept = fleet.store.read("select sum(energy_mj) from marts.statement_energy_hourly").item()
    assert kept == before.rows["energy_mj"].sum()

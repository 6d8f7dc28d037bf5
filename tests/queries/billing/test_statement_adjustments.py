"""Notes and disputes stand beside the amounts; a credit is a line of the next statement, once."""

import contextlib
import csv
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from types import SimpleNamespace

import polars as pl
import pytest
from msgspec.structs import replace as change
from tests.queries.conftest import built_after, built_file, copy_of, store_of
from tests.tables import refuses

from goodput_billing.adjustments import record
from goodput_billing.adjustments.record import Target
from goodput_billing.render import files
from goodput_billing.render.focus import focus
from goodput_billing.render.tables import tables
from goodput_billing.statement import adjustments, one_account
from goodput_billing.statement.amounts.credit_rules import CreditRule
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.errors import GoodputError, QueryError

HOUR_S = 3_600
FIRST, NEXT, THIRD = (date(2027, 1, day) for day in (15, 16, 17))
SETTINGS = StatementSettings()
HOSTILE = "=cmd|' /C calc'!A0 <script>alert(1)</script> \u202e"


@built_file
def open_fleet(evidence):
    """Load three days: A and B have jobs on the first, B runs on into the second."""
    evidence.node("a", 4, watched=72 * HOUR_S)
    evidence.job("1", 0, 5 * HOUR_S, ["a"], 2, account="A", user_name="ann")
    evidence.job("2", 10 * HOUR_S, 20 * HOUR_S, ["a"], 1, account="B", user_name="bob")
    evidence.add("rates", gpu_model="H100", price_per_gpu_h=Decimal(2), cluster=None)


first_closed = built_after("open_fleet", lambda e: statement(e.store, FIRST, SETTINGS))
fleet = copy_of("first_closed")
store = store_of("first_closed")  # for tests that are refused, and so write nothing


def credited(store, amount="5.00", account="A", **of):
    return record.credit(
        store, SETTINGS, Target(FIRST, account, **of), Decimal(amount), reason=HOSTILE, made_by="me"
    )


def said(store, kind, account="A"):
    return record.speak(store, SETTINGS, kind, Target(FIRST, account), reason="why", made_by="me")


@pytest.fixture(scope="module")
def three_days(module_store, first_closed):
    """Give what people said of the first day, it before that, and three days after it."""
    path, before = first_closed
    store = module_store(copy_of=path)
    credit = credited(store)
    said(store, "note")
    said(store, "dispute")
    resolved = said(store, "dispute", account="B")
    record.resolve(store, SETTINGS, resolved, "accepted", reason="right", made_by="boss",
                   amount=Decimal(3))  # fmt: skip
    days = [statement(store, when, SETTINGS) for when in (FIRST, NEXT, THIRD)]
    return SimpleNamespace(store=store, before=before, credit=credit, resolved=resolved, days=days)


def credits_in(made):
    return made.rows.filter(pl.col("adjustment_id").is_not_null())


def test_a_credit_is_a_line_of_the_next_statement_once_and_changes_no_closed_day(three_days):
    before, (first, following, third) = three_days.before, three_days.days

    assert first.rows.rows() == before.rows.rows()
    assert (first.bookings[0].digest, len(first.bookings)) == (before.bookings[0].digest, 1)
    (row,) = credits_in(following).filter(pl.col("team") == "A").to_dicts()
    assert (row["line"], row["gpu_ms"], row["total_cost"]) == ("credit", 0, Decimal("-5.00"))
    assert (row["reason"], row["for_day"]) == (" ".join(HOSTILE.split()), FIRST)
    assert row["adjustment_id"] == three_days.credit
    assert following.is_closed
    assert following.total_cost == 4 * 24 * 2 - 5 - 3
    (account,) = following.accounts.filter(pl.col("account") == "A").to_dicts()
    assert (account["credit_cost"], account["total_cost"]) == (Decimal(-5), Decimal(-5))
    assert credits_in(third).is_empty()
    assert following.accounts["yesterday_cost"].sum() == first.total_cost


def test_the_day_that_books_a_credit_still_balances_and_is_corrected_without_it(fleet):
    store = fleet.store
    credited(store)
    statement(store, NEXT, SETTINGS)

    fleet.job("9", 24 * HOUR_S, 25 * HOUR_S, ["a"], 4, account="C")
    store.build()
    made = statement(store, NEXT, SETTINGS)

    assert made.was_corrected
    booked = made.bookings[0].rows["adjustment_id"].drop_nulls()
    assert credits_in(made)["adjustment_id"].to_list() == booked.to_list()
    assert made.total_cost == 4 * 24 * 2 - 5
    (balance,) = made.balance.to_dicts()
    assert balance["statement_ms"] == balance["ledger_ms"] == balance["capacity_ms"]


def test_files_have_the_credit_and_escape_its_reason(three_days, tmp_path):
    files.write(three_days.days[1], tmp_path, ["csv", "parquet", "html"])
    html = (tmp_path / "statement-2027-01-16.html").read_text()
    text = (tmp_path / "statement-2027-01-16.csv").read_text()
    (row,) = (r for r in csv.DictReader(io.StringIO(text)) if r["reason"] and r["team"] == "A")
    parquet = pl.read_parquet(tmp_path / "statement-2027-01-16.parquet")

    assert (row["total_cost"], row["for_day"]) == ("-5.00", "2027-01-15")
    assert row["reason"].startswith("'=cmd")
    assert " ".join(HOSTILE.split()) in parquet["reason"].to_list()
    assert "<script>" not in html
    assert "credit for 2027-01-15: =cmd" in html


@pytest.mark.parametrize("version", ["1.2", "1.4"])
def test_focus_has_a_credit_of_a_negative_cost(three_days, version):
    made = three_days.days[1]

    rows = list(csv.DictReader(io.StringIO(focus(made, version).decode())))
    _, row = [row for row in rows if row["ChargeCategory"] == "Credit"]

    assert row["BilledCost"] == row["EffectiveCost"] == row["ContractedCost"] == "-3.00"
    assert row["ChargeDescription"] == "Credit for 2027-01-15: right, account B"
    assert (row["ChargeFrequency"], row["ChargeClass"]) == ("One-Time", "")
    assert (row["SubAccountName"], row["PricingQuantity"]) == ("B", "")
    assert sum(Decimal(row["EffectiveCost"]) for row in rows) == made.total_cost


def test_an_account_sees_its_own_alone(three_days):
    whole = three_days.days[1]

    of_a, of_b = (one_account.of_account(three_days.store, whole, account) for account in "AB")

    assert credits_in(of_b)["reason"].to_list() == ["right"]
    assert of_b.adjustments.is_empty()
    assert credits_in(of_a)["team"].to_list() == ["A"]
    assert of_a.adjustments["kind"].to_list() == ["note", "dispute"]


def test_open_disputes_are_on_their_day_and_the_next_and_resolved_ones_on_their_day(three_days):
    first, following, third = (  # kind and state of what people said, as a statement lists it
        [(row[1], row[2]) for table in tables(made, lines=9) for row in table.rows
         if table.title == "Notes, disputes and credits"]
        for made in three_days.days
    )  # fmt: skip

    said_in_full = [("Note", "\N{EN DASH}"), ("Dispute", "open")]
    assert first[1:] == [*said_in_full, ("Dispute", "accepted"), ("Resolution", "accepted"),
                         ("Credit", "not booked yet")]  # fmt: skip
    assert following == said_in_full
    assert third == []
    assert three_days.days[0].total_cost == 4 * 16 * 2
    again = (three_days.store, SETTINGS, three_days.resolved, "rejected")
    with pytest.raises(QueryError, match="resolved already"):
        record.resolve(*again, reason="no", made_by="boss")


@pytest.mark.parametrize(("of", "amount", "more", "message"), [
    ({"when": date(2031, 1, 1)}, "1", {}, "there is no statement of 2031-01-01"),
    ({"when": NEXT, "account": "B"}, "1", {}, "2027-01-16 is still open"),
    ({"account": "Z"}, "1", {}, "there is no account 'Z' on the statement of 2027-01-15"),
    ({"user_name": "eve"}, "1", {}, "no line of account 'A', user 'eve'"),
    ({"line": "77"}, "1", {}, "no line of account 'A', line '77'"),
    ({"cluster": "other"}, "1", {}, "no account 'A' of cluster 'other'"),
    ({}, "20.01", {}, "was billed 20.00 USD on 2027-01-15: a credit of 20.01 is more"),
    ({}, "0.001", {}, "a multiple of 0.01 USD above 0"),
    ({}, "-1", {}, "a multiple of 0.01 USD above 0"),
    ({}, "NaN", {}, "a multiple of 0.01 USD above 0"),
    ({}, "1", {"code": "EUR"}, "is in USD, not in EUR"),
    ({}, "1", {"reason": " \n "}, "a reason has 1 to 500 characters"),
    ({}, "1", {"reason": "x" * 501}, "a reason has 1 to 500 characters"),
    ({}, "1", {"made_by": ""}, "a name has 1 to 80 characters"),
])  # fmt: skip
def test_what_is_on_no_closed_statement_has_no_credit(store, of, amount, more, message):
    target = Target(**({"when": FIRST, "account": "A"} | of))
    said_by = {"reason": "r", "made_by": "me"} | more

    with pytest.raises(QueryError, match=message):
        record.credit(store, SETTINGS, target, Decimal(amount), **said_by)

    assert adjustments.listed(store).is_empty()


def test_credits_of_a_part_and_of_the_whole_never_exceed_what_was_billed(fleet):
    credited(fleet.store, "15", user_name="ann", line="1")
    credited(fleet.store, "5")

    for of in ({}, {"user_name": "ann"}, {"line": "usage"}):
        with pytest.raises(QueryError, match=r"is credited already: a credit of 0\.01 is more"):
            credited(fleet.store, "0.01", **of)
    credited(fleet.store, "12", account="B")


def met(monkeypatch, module, name):
    """Let two callers of a function both return before either goes on, if they can."""
    function, both = getattr(module, name), threading.Barrier(2)

    def waiting(*given, **more):
        found = function(*given, **more)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.3)
        return found

    monkeypatch.setattr(module, name, waiting)


def test_two_closers_at_the_same_time_book_a_credit_once(fleet, monkeypatch):
    credited(fleet.store)
    met(monkeypatch, adjustments, "pending_rows")

    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda when: statement(fleet.store, when, SETTINGS), (NEXT, THIRD)))

    assert all(one.is_closed for one in made)
    assert [credits_in(one).height for one in made] in ([1, 0], [0, 1])


def test_two_credits_at_the_same_time_do_not_exceed_what_was_billed(fleet, monkeypatch):
    met(monkeypatch, record, "_refuse_more_than_billed")

    with ThreadPoolExecutor(2) as pool:
        given = [pool.submit(credited, fleet.store, "15") for _ in range(2)]

    assert sorted(type(one.exception()) for one in given if one.exception()) == [QueryError]
    assert adjustments.listed(fleet.store)["amount"].to_list() == [Decimal(15)]


RULES = (
    CreditRule("half of the day", of="all", share=0.5, min_cost=12.01),
    CreditRule("third for B", of="all", share=0.333, accounts=("B",)),
)


def test_a_rule_gives_credits_of_a_day_that_closes_once(new_evidence, open_fleet):
    store = new_evidence(copy_of=open_fleet).store
    ruled = change(SETTINGS, credits=RULES)

    for _ in range(2):
        first = statement(store, FIRST, ruled)
    following = statement(store, NEXT, SETTINGS)  # by the rules when the day closed

    given = {row["team"]: row["total_cost"] for row in credits_in(following).to_dicts()}
    assert credits_in(first).is_empty()
    assert given == {"A": Decimal("-10.00"), "B": Decimal("-3.99")}  # 12.00 x 0.333, rounded down
    assert adjustments.listed(store)["made_by"].to_list() == ["policy"] * 2


test_the_same_cost_is_not_given_back_by_two_settings = refuses(
    GoodputError,
    lambda fields: StatementSettings(**fields),
    ({"credit_infra_failures": True, "credits": RULES[:1]}, "give back the same cost"),
    ({"credits": (RULES[0], *[RULES[1]] * 2)}, "for 'B' add up to 1.166"),
)
NONSENSE = ({"reason": " "}, {"of": "x"}, {"share": 0}, {"share": 1.1}, {"min_cost": -1})
test_a_rule_that_means_nothing_is_refused = refuses(
    GoodputError,
    lambda fields: CreditRule(**{"reason": "r"} | fields),
    *((fields, "statement.credits.") for fields in NONSENSE),
)

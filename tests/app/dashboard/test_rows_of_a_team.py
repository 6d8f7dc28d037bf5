"""A reader of one team: links, counts, search, files and threads; each page: test_role_matrix."""

from datetime import date
from functools import partial

import pytest
from tests.app.opened_page import sent, texts
from tests.two_teams import COBALTS, OTHERS, RED, built

from goodput_app.access import rows
from goodput_app.access.identity import LOCAL, Identity, Role
from goodput_app.dashboard import flags, price_edit, statement_actions
from goodput_app.dashboard.data import search, statements
from goodput_app.process.store import use_store
from goodput_billing.adjustments import record
from goodput_billing.adjustments.record import Target
from goodput_billing.statement import adjustments
from goodput_billing.statement.settings import StatementSettings
from goodput_queries.errors import NotPermittedError
from goodput_queries.scope import EVERYTHING, Scope

OTHER = COBALTS.word
WINDOW = {"from": "2027-01-15T08:00:00Z", "to": "2027-01-15T10:00:00Z"}


@pytest.fixture(scope="module")
def store(teams):
    """Give two hours of two teams, each of which disputes a day."""
    for team in (RED, COBALTS.name):
        about, reason = Target(date(2027, 1, 15), team), f"{team} disputes it"
        record.speak(teams, StatementSettings(), "dispute", about, reason=reason, made_by=team)
    return teams


@pytest.fixture(autouse=True)
def reader(store, as_identity):
    """Ask as finance of the red team, who is offered files too; give what changes who asks."""
    use_store(store)
    as_identity(Identity("reader", frozenset({Role.FINANCE}), frozenset({RED})))
    return as_identity


def test_who_sees_all_teams_sees_both_after_who_does_not(visit, store, reader):
    """Kept answers have the teams in their keys."""
    assert OTHER not in sent(visit(store, "all_runs", **WINDOW))
    reader(LOCAL)
    every = visit(store, "all_runs", **WINDOW)

    assert OTHER in sent(every)
    assert "not shown" not in texts(every)


def test_what_is_evaluated_in_another_thread_keeps_the_teams(reader, monkeypatch):
    monkeypatch.setattr(flags, "IS_EVALUATED", True)
    monkeypatch.setattr(flags, "FIRST_WAIT_S", 60)
    scope = rows.limited(Scope(1_800_000_000_000, 1_800_007_200_000))
    reader(LOCAL)  # as it is where nobody is signed in
    found = flags.known(scope)

    assert OTHER not in str(found.rows())
    assert "redrun" in str(found.rows())


def test_the_search_finds_runs_of_the_readers_teams_alone():
    assert search.find("cobalt").is_empty()
    assert search.find("node").is_empty()
    assert set(search.find("red")["kind"]) == {"run", "team"}


def test_files_are_of_an_account_of_the_reader(reader):
    """What is in each of them: test_role_matrix."""
    how = statements.chosen(None)
    (day,) = statements.days(Scope(1_800_000_000_000, 1_800_007_200_000), how)
    assert RED in statements.statement_file([day], "csv", how, RED).decode()
    assert statements.chosen("uniform").idle is None, "two policies tell the idle cost of all"
    for account in (COBALTS.name, None):
        with pytest.raises(NotPermittedError):
            statements.statement_file([day], "csv", how, account)
    reader(LOCAL)  # as in the thread in which a browser fetches what was offered
    with pytest.raises(NotPermittedError):
        statements.statement_file([day], "csv", how, COBALTS.name, seen=(RED,))


def test_what_a_site_pays_and_sent_out_is_withheld(configured, store):
    configured("[ui]\nedit_prices = true\n")
    write = partial(price_edit.read_in, store, "rates", "gpu_model,price_per_gpu_h\nA100,3\n")
    of_money = (statements.rates, statements.tariffs, statements.budget_card, write)
    for read in (*of_money, statements.price_loads, statements.past_statements):
        with pytest.raises(NotPermittedError):
            read()


def test_disputes_are_of_an_account_of_the_reader(store):
    """Role and teams limit both what is listed and what is written."""
    assert statement_actions.listed(store)["account"].to_list() == [RED]
    other = Target(date(2027, 1, 15), COBALTS.name)
    (of_other,) = adjustments.listed(store).filter(account=COBALTS.name)["adjustment_id"]
    for write in (
        lambda: statement_actions.speak(store, "note", other, "seen"),
        lambda: statement_actions.credit(store, other, "1", "seen"),
        lambda: statement_actions.resolve(store, of_other, "rejected", "", "seen"),
    ):
        with pytest.raises(NotPermittedError):
            write()

    assert adjustments.listed(store).height == 2


def of_cost(world, other):
    """Return all that the Cost page gives the red team, once each team has disputed its own day."""
    use_store(world)
    for team in (RED, other.name):
        about, reason = Target(date(2027, 1, 15), team), f"{team} disputes it"
        record.speak(world, StatementSettings(), "dispute", about, reason=reason, made_by=team)
    how, scope = statements.chosen(None), Scope(1_800_000_000_000, 1_800_007_200_000)
    (day,) = wanted = statements.days(scope, how)
    forms = ("csv", "focus", "html")
    spoken = statement_actions.listed(world)
    files = [
        statements.statement_file(wanted, form, how, RED).decode().replace(key, "")
        for form, key in zip(forms, [*spoken["adjustment_id"]] * len(forms), strict=True)
    ]
    shown = {
        "disputes": (spoken["account"].to_list(), spoken["reason"].to_list()),
        "costs": [cost.accounts.rows() for cost in statements.costs(wanted, how)],
        "month": statements.month(day, how).rows(),
        "unpriced": statements.unpriced(scope).rows(),
        "by": [statements.breakdown(wanted, how, by, None, None).rows() for by in statements.BY],
    }
    return dict(zip(forms, files, strict=True)) | shown


@pytest.mark.machine
def test_what_another_team_ingests_and_disputes_changes_nothing(filled, module_store):
    """Prices, factors, carbon and budgets of its own; amounts, names and times differ."""
    worlds = {
        other.word: of_cost(module_store(copy_of=built(filled, other)), other)
        for other in (COBALTS, OTHERS)
    }

    for word, shown in worlds.items():
        assert [name for name, of in shown.items() if word in str(of)] == []
    first, second = worlds.values()
    assert {name: (of, second[name]) for name, of in first.items() if second[name] != of} == {}


def test_teams_of_a_scope_are_never_widened(reader):
    reader(Identity("reader", teams=frozenset({"a", "b"})))

    assert rows.limited(EVERYTHING).teams == ("a", "b")
    assert rows.limited(Scope(teams=("b", "c"))).teams == ("b",)
    assert rows.limited(Scope(teams=("c",))).teams == ()
    reader(LOCAL)
    assert rows.limited(Scope(teams=("c",))).teams == ("c",)
    assert rows.limited(EVERYTHING) == EVERYTHING

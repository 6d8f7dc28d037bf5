"""Findings are evaluated beside the pages, once for all that ask for them."""

from concurrent.futures import wait
from threading import Event

import polars as pl
import pytest
from tests.app.opened_page import sent

from goodput_app import ranked
from goodput_app.dashboard.data import findings
from goodput_app.process import evaluations
from goodput_app.process.store import use_store
from goodput_queries.errors import QueryError
from goodput_queries.scope import Scope

pytestmark = pytest.mark.usefixtures("impatient")
SCOPE = Scope(team="research")


@pytest.fixture
def impatient(unpriced, monkeypatch):
    """Wait for no finding of a database; let what runs end."""
    use_store(unpriced)
    monkeypatch.setattr(findings, "WAIT_S", 0)
    yield
    wait(findings.forget())


def test_who_asks_does_not_wait_and_gets_them_later():
    assert findings.known(Scope()) is None
    wait([findings.evaluation(Scope())])
    found = findings.known(Scope())
    assert findings.is_evaluated(Scope())
    assert found.findings.height > 0
    assert "back_ms" in found.fixes.columns


def test_an_evaluation_that_waits_for_a_thread_reads_the_database_of_its_page(here):
    others = Event()
    for _ in range(2):
        findings._pool.submit(others.wait)

    evaluation = findings.evaluation(Scope())
    use_store(None)
    others.set()

    assert evaluation.result(60).findings.height > 0
    assert list(here.iterdir()) == []


def test_an_evaluation_that_failed_is_raised_once_and_tried_again(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(ranked, "FINDINGS", "no_such_column")
        wait([failed := findings.evaluation(SCOPE)])

    with pytest.raises(QueryError, match="no_such_column"):
        findings.known(SCOPE)

    assert findings.evaluation(SCOPE) is not failed


@pytest.mark.parametrize("page", ["fleet_overview", "open_findings"])
def test_a_page_says_that_findings_follow(unpriced, visit, page):
    app = visit(unpriced, page)
    assert any("Findings are being evaluated" in caption.value for caption in app.caption)
    assert "awaiting_findings" in sent(app)  # for whoever waits for the page


class Clock:
    """A database whose state moves on, and evaluations that end when they are let."""

    def __init__(self):
        self.number, self.begun = 0, 0
        self.may_end = Event()

    def state(self):
        """Return the state of the database."""
        return 0, self.number, ""

    def evaluate(self, *_):
        """Return what is found in the present state, once it may end."""
        self.begun += 1
        assert self.may_end.wait(60)
        rows = pl.DataFrame({"number": [self.number]})
        return findings.Found(rows, rows)

    def moves(self):
        """Let something be loaded, so that evaluations take time again."""
        self.number += 1
        self.may_end = Event()


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(findings.marts, "state", found.state)
    monkeypatch.setattr(findings, "_evaluate", found.evaluate)
    yield found
    found.may_end.set()


def at(second):
    return Scope(from_ms=second * 1_000, to_ms=(86_400 + second) * 1_000)


def test_findings_of_a_moment_ago_are_shown_until_newer_ones_are_there(clock):
    """The window follows the clock, and live sources change the database meanwhile."""
    clock.may_end.set()
    wait([findings.evaluation(at(0))])
    shown = findings.known(at(0))
    assert shown is not None
    assert findings.is_evaluated(at(0))

    clock.moves()

    assert findings.known(at(60)) is shown
    assert not findings.is_evaluated(at(60))
    assert not findings.has_newer(at(60), shown)
    assert findings.known(at(3_600)) is None
    clock.may_end.set()
    wait([findings.evaluation(at(60))])
    assert findings.has_newer(at(60), shown)
    assert findings.known(at(60)).findings["number"].to_list() == [1]


def test_an_evaluation_ends_before_the_next_one_of_its_page_begins(clock):
    assert findings.known(at(0)) is None
    first = findings.evaluation(at(0))
    for number in range(5):
        clock.number += 1
        assert findings.known(at(number)) is None
        assert not findings.has_newer(at(number), None)

    assert (clock.begun <= 1, evaluations.running()) == (True, 1)
    clock.may_end.set()
    wait([first])
    assert findings.has_newer(at(5), None)
    wait([findings.evaluation(at(5))])
    assert evaluations.running() == 0


def test_sessions_share_an_evaluation_and_an_old_one_makes_room(clock, monkeypatch):
    monkeypatch.setattr(findings, "EVALUATIONS_KEPT", 1)
    clock.may_end.set()
    first = findings.evaluation(SCOPE)
    other_buckets = findings.evaluation(Scope(team="research", bucket_ms=60_000))

    other = findings.evaluation(Scope(team="platform"))
    wait([first, other])

    assert other_buckets is first is not other
    assert len(findings.forget()) == 1

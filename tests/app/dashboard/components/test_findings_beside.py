"""Findings are evaluated beside the pages, once for all that ask for them."""

from __future__ import annotations

from concurrent.futures import wait
from threading import Event
from typing import TYPE_CHECKING

import pytest

from goodput_app.dashboard.data import findings
from goodput_app.dashboard.state import use_store
from goodput_queries.errors import QueryError
from goodput_queries.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

    from goodput_queries.storage.store import LocalStore

pytestmark = pytest.mark.usefixtures("impatient")
SCOPE = Scope(team="research")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wait for no finding; let what runs end."""
    monkeypatch.setattr(findings, "WAIT_S", 0)
    yield
    wait(findings.forget())


def test_who_asks_does_not_wait_and_gets_them_later(unpriced: LocalStore) -> None:
    use_store(unpriced)

    assert findings.known(Scope()) is None

    wait([findings.evaluation(Scope())])
    found = findings.known(Scope())
    assert findings.is_evaluated(Scope())
    assert found is not None
    assert found.findings.height > 0
    assert "back_ms" in found.fixes.columns


def test_an_evaluation_that_waits_for_a_thread_reads_the_database_of_its_page(
    unpriced: LocalStore, here: Path
) -> None:
    use_store(unpriced)
    others = Event()
    for _ in range(2):
        findings._pool.submit(others.wait)

    evaluation = findings.evaluation(Scope())
    use_store(None)
    others.set()

    assert evaluation.result(60).findings.height > 0
    assert list(here.iterdir()) == []


def test_sessions_and_charts_of_other_buckets_share_an_evaluation(unpriced: LocalStore) -> None:
    use_store(unpriced)

    evaluation = findings.evaluation(SCOPE)

    assert findings.evaluation(Scope(team="research", bucket_ms=60_000)) is evaluation
    assert findings.evaluation(Scope(team="platform")) is not evaluation


def test_an_evaluation_that_failed_is_raised_once_and_tried_again(
    unpriced: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_store(unpriced)
    with monkeypatch.context() as patched:
        patched.setattr(findings, "ORDER", "no_such_column")
        wait([failed := findings.evaluation(SCOPE)])

    with pytest.raises(QueryError, match="no_such_column"):
        findings.known(SCOPE)

    assert findings.evaluation(SCOPE) is not failed


@pytest.mark.parametrize("page", ["fleet_overview", "open_findings"])
def test_a_page_says_that_findings_follow(
    unpriced: LocalStore, visit: Callable[..., AppTest], page: str
) -> None:
    app = visit(unpriced, page)

    assert not app.exception
    assert not app.error
    assert any("Findings are being evaluated" in caption.value for caption in app.caption)


def test_an_old_evaluation_makes_room(
    unpriced: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_store(unpriced)
    monkeypatch.setattr(findings, "EVALUATIONS_KEPT", 1)
    first = findings.evaluation(SCOPE)

    wait([findings.evaluation(Scope(team="platform")), first])

    assert len(findings.forget()) == 1

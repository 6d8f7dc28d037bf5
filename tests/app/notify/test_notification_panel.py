"""The Data page: how notifications fare, and a test message for who may send one."""

import contextlib
import json
from datetime import UTC, datetime

import pytest
from tests.app.messages.notices import DOWN
from tests.app.opened_page import press, table
from tests.app.receivers import free_port

from goodput_app.access.current import NotAllowedError
from goodput_app.access.identity import Role
from goodput_app.dashboard import notifying
from goodput_app.notify import occurrences
from goodput_app.notify.notifier import Notifier, Plan
from goodput_app.notify.plan import Changes
from goodput_app.settings import settings
from goodput_messages.message import message
from goodput_queries import audit
from goodput_queries.database import LocalStore
from goodput_queries.errors import NotPermittedError


@pytest.fixture
def notified(here, database, hook):
    """Give a database with a message that a web server took and one that nobody takes."""
    (here / "goodput.toml").write_text(
        f"""
        [[notify]]
        to = "webhook"
        teams = ["nlp"]
        url = "{hook.url}"
        [[notify]]
        to = "slack"
        min_severity = "page"
        url = "http://127.0.0.1:{free_port()}/secret"
        """
    )
    settings.cache_clear()
    now = datetime.now(UTC)
    at_ms = int(now.timestamp() * 1000)
    with contextlib.closing(LocalStore(database, threads=1)) as store:
        written = [message(name, "open", (DOWN,), at_ms) for name in ("webhook", "slack")]
        occurrences.write(store, [Changes(messages=written)], now)
        Notifier(store, Plan(settings().notify)).deliver()
        yield store


def test_targets_failures_and_waiting_messages_are_shown_and_a_test_is_sent(
    notified, visit, as_person, hook
):
    as_person(Role.OPERATOR)
    app = visit(notified, "data_health", is_sound=False)

    shown = table(app, "target", "wants").select("target", "wants", "sent", "waiting").rows()
    assert shown == [("webhook", "ticket and above; teams: nlp", 1, 0), ("slack", "page", 0, 1)]
    assert any("1 of 2 targets are failing" in error.value for error in app.error)
    (waiting,) = table(app, "target", "attempts").to_dicts()
    assert (waiting["target"], waiting["attempts"]) == ("slack", 1)
    assert "A node is down" in waiting["message"]
    assert "Connection refused" in waiting["error"]
    assert "/secret" not in str(app.error) + str(waiting)

    app = press(app, "Send a test message")

    assert [said.value for said in app.success] == ["webhook took the test message."]
    titles = [json.loads(post[1])["findings"][0]["title"] for post in hook.posts]
    assert titles == ["A node is down", "Test of a notification"]
    assert audit.entries(notified).select("who", "action", "subject").rows() == [
        ("ada", "send a test notification", "webhook")
    ]


def test_a_viewer_sends_no_test_and_a_reader_of_a_team_sees_no_message(notified, as_person, hook):
    """What the page offers each role: test_role_matrix."""
    as_person(Role.VIEWER)
    with pytest.raises(NotAllowedError):
        notifying.send_test(notified, "webhook", "ada")

    as_person(Role.OPERATOR, teams=frozenset({"nlp"}))
    for read in (notifying.receivers, notifying.waiting):
        with pytest.raises(NotPermittedError):
            read(notified)
    assert len(hook.posts) == 1

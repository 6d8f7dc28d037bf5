"""Notifications on the Data page, by `goodput notify` and in `goodput doctor`."""

import contextlib
import json
import shutil
from datetime import UTC, datetime

import pytest
from tests.app.command_line import failing, run
from tests.app.messages.notices import DOWN
from tests.app.notify.conftest import fail
from tests.app.opened_page import press, table
from tests.app.receivers import free_port

from goodput_app.access.current import NotAllowedError
from goodput_app.access.identity import Role
from goodput_app.cli.doctor.reports import notification_findings
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
def notified(configured, database, hook):
    """Give a database with a message that a web server took and one that nobody takes."""
    configured(f"""
        [[notify]]
        to = "webhook"
        teams = ["nlp"]
        url = "{hook.url}"
        [[notify]]
        to = "slack"
        min_severity = "page"
        url = "http://127.0.0.1:{free_port()}/secret"
        """)
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


@pytest.fixture
def targets(configured, hook, post):
    """Write settings with a web server, a mail server and one that is down; return its port."""
    port = free_port()
    configured(f"""
        [report.mail]
        host = "127.0.0.1"
        port = {post.port}
        security = "none"
        sender = "goodput@lab.example"
        to = ["finance@lab.example"]
        [[notify]]
        to = "webhook"
        url = "{hook.url}"
        [[notify]]
        to = "owner"
        address = "{{user}}@lab.example"
        [[notify]]
        to = "slack"
        url = "http://127.0.0.1:{port}/secret"
        """)
    return port


def test_a_test_message_goes_to_each_target_and_errors_are_rows(targets, hook, post):
    result = run("notify", "--test", "--user", "ann", "--format", "json")

    assert result.exit_code == 1
    assert "1 of 3 targets failed." in result.stderr
    rows = {row["target"]: row for row in json.loads(result.stdout)}
    assert [rows[name]["status"] for name in ("webhook", "owner", "slack")] == [
        "sent", "sent", "failed",
    ]  # fmt: skip
    assert rows["slack"]["error"] == (
        f"http://127.0.0.1:{targets}: no connection (Connection refused)."
    )
    assert json.loads(hook.posts[0][1])["findings"][0]["title"] == "Test of a notification"
    assert post.recipients == [["ann@lab.example"]]


@pytest.mark.usefixtures("targets")
def test_a_dry_run_lists_messages_and_sends_none(here, hook, built_empty):
    shutil.copyfile(built_empty, here / "goodput.duckdb")
    with contextlib.closing(LocalStore(here / "goodput.duckdb", threads=1)) as store:
        fail(store)

    result = run("notify", "--dry-run", "--format", "json")

    assert result.exit_code == 0, result.output
    title = "[ticket] A source does not answer: slurm sacct"
    assert [
        (row["target"], row["event"], row["findings"], row["message"])
        for row in json.loads(result.stdout)
    ] == [("webhook", "open", 1, title), ("slack", "open", 1, title)]
    assert hook.posts == []
    with contextlib.closing(LocalStore(here / "goodput.duckdb", threads=1)) as store:
        assert store.read("from state.notifications").is_empty()
        assert store.read("from state.notified_findings").is_empty()


@pytest.mark.usefixtures("here")
def test_one_of_both_is_asked_for_and_targets_are_needed():
    assert "give either --test or --dry-run" in run("notify").stderr
    assert failing("notify", "--test", "--dry-run", code=2)
    assert "no target is named under [[notify]]" in failing("notify", "--test")


def test_doctor_tries_each_target_and_sends_nothing(targets, hook, post):
    rows = {what: (status, found) for what, status, found, _ in notification_findings()}

    assert rows == {
        "notify webhook": ("ok", f"{hook.url} answers"),
        "notify owner": ("ok", f"127.0.0.1:{post.port} answers"),
        "notify slack": ("problem",
                         f"http://127.0.0.1:{targets}: no connection (Connection refused)."),
    }  # fmt: skip
    assert (hook.posts, post.mails) == ([], [])

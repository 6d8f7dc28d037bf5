"""Notifications: none is lost or doubled; the Data page, `goodput notify` and `goodput doctor`."""

import contextlib
import json
import shutil
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
from tests.app.command_line import failing, run
from tests.app.messages.notices import DOWN
from tests.app.opened_page import press, table
from tests.app.receivers import Clock, free_port, post_office, web
from tests.app.served import program
from tests.until import until

from goodput_app.access.current import NotAllowedError
from goodput_app.access.identity import Role
from goodput_app.cli.doctor.reports import notification_findings
from goodput_app.dashboard import notifying as panel
from goodput_app.notify import occurrences
from goodput_app.notify.notifier import Notifier, Plan, notifying
from goodput_app.notify.plan import Changes
from goodput_app.settings import settings
from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_messages import outbox
from goodput_messages.message import message
from goodput_messages.targets import Alertmanager, Mail, Webhook
from goodput_queries import audit
from goodput_queries.database import LocalStore
from goodput_queries.errors import NotPermittedError

SOURCE, ORIGIN = "slurm", "sacct"
SUBJECT = f"slurm {ORIGIN}"
OUTAGE_S = 600.0
RUN = """
import sys, threading
from goodput_app.notify.notifier import Notifier, Plan
from goodput_messages.targets import Webhook
from goodput_queries.database import LocalStore
store = LocalStore(sys.argv[1], threads=1)
target = Webhook(url=sys.argv[2], wait_s=0.0, timeout_s=60)
Notifier(store, Plan((target,), every_s=0.05)).run(threading.Event())
"""


@pytest.fixture
def clock():
    """Give a clock that begins now, by which sources are late."""
    return Clock(datetime.now(UTC).replace(microsecond=0))


@pytest.fixture
def store(own_store, built_empty):
    """Give a database without evidence, whose findings are sources that do not answer."""
    return own_store(copy_of=built_empty)


def fail(store, origin=ORIGIN):
    """Let a source not answer: a finding of severity ticket."""
    now = datetime.now(UTC).replace(tzinfo=None)
    live_status.write(store, [Status(SOURCE, origin, now, 60.0).failed(now, "it is away")])


def mend(store, origin=ORIGIN):
    """Let a source answer again: its finding closes."""
    now = datetime.now(UTC).replace(tzinfo=None)
    live_status.write(store, [Status(SOURCE, origin, now, 60.0).answered(now)])


def round_of(notifier):
    notifier.look()
    notifier.deliver()


def alerts(hook):
    """Return the alerts about the source, as they came."""
    came = [alert for _, body in hook.posts for alert in json.loads(body)]
    return [alert for alert in came if SUBJECT in alert["annotations"]["summary"]]


def about_the_source(post):
    return [mail["Subject"] for mail in post.mails if SUBJECT in mail["Subject"]]


def test_after_outage_and_restart_each_alert_is_out_and_over_once(store, clock):
    """Alertmanager and mail are down for ten minutes, in which the server ends."""
    web_port, mail_port = free_port(), free_port()
    targets = (
        Alertmanager(url=f"http://127.0.0.1:{web_port}", wait_s=0.0),
        Mail(addresses=("ops@lab.example",), sender="goodput@lab.example", host="127.0.0.1",
             port=mail_port, security="none", wait_s=0.0),
    )  # fmt: skip
    plan = Plan(targets, now=clock.now)
    fail(store)
    round_of(Notifier(store, plan))
    waiting = store.read("select target, attempts, error from state.notifications order by target")
    assert waiting["attempts"].to_list() == [1, 1]
    assert all("Connection refused" in error for error in waiting["error"])
    failing = store.read("select origin from marts.live_sources where source = 'notify'")
    assert sorted(failing["origin"]) == ["alertmanager", "mail"]

    store.close()
    clock.at += timedelta(seconds=OUTAGE_S)
    opened = contextlib.closing(LocalStore(store.path, threads=1))
    with opened as later, web(port=web_port) as hook, post_office(port=mail_port) as post:
        notifier = Notifier(later, plan)
        notifier.deliver()
        clock.at += timedelta(seconds=30)
        notifier.deliver()
        mend(later)
        clock.at += timedelta(seconds=30)
        round_of(notifier)
        clock.at += timedelta(seconds=30)
        notifier.deliver()
        assert store_is_done(later)
        assert later.read("from marts.live_sources where source = 'notify'").is_empty()

    opened = [one for one in alerts(hook) if one["endsAt"] > one["startsAt"]]
    ends = [one["endsAt"] for one in opened]
    assert len(about_the_source(post)) == 2
    assert about_the_source(post)[1].startswith("[ticket] Resolved: ")
    assert post.mails[1]["In-Reply-To"] == post.mails[0]["Message-ID"]
    # the message, once more as still open (the first time of the new process), the end
    assert len(ends) == 3
    assert ends[2] < min(ends[:2])


def store_is_done(store):
    return store.read("from state.notifications where sent_at is null").is_empty()


@pytest.mark.machine
def test_a_server_that_is_killed_before_it_marks_a_message_sends_it_again_as_the_same(store, hook):
    fail(store)
    store.close()
    hook.pause_s = 0.3  # between bytes of the answer: it is taken, and not yet marked
    with program([sys.executable, "-c", RUN, store.path, hook.url]):
        until(lambda: hook.posts, "a message is posted")
    hook.pause_s = 0.0

    with contextlib.closing(LocalStore(store.path, threads=1)) as later:
        notifier = Notifier(later, Plan((Webhook(url=hook.url, wait_s=0.0),)))
        notifier.deliver()
        notifier.deliver()

        assert store_is_done(later)
    ids = [headers["idempotency-key"] for headers, _ in hook.posts]
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert hook.posts[0][1] == hook.posts[1][1]


def test_what_is_refused_holds_up_its_findings_and_no_others(store, hook, clock):
    fail(store)
    fail(store, "squeue")
    target = Webhook(url=hook.url, wait_s=0.0, group_by=("severity",), timeout_s=5)
    plan = Plan((target,), now=clock.now)
    hook.answers.append((400, {}))
    round_of(Notifier(store, plan))
    mend(store)
    mend(store, "squeue")
    fail(store, "scontrol")
    clock.at += timedelta(seconds=1)

    notifier = Notifier(store, plan)
    round_of(notifier)

    sent = [json.loads(body) for _, body in hook.posts]
    assert [(one["event"], len(one["findings"])) for one in sent] == [
        ("finding.open", 2),
        ("finding.open", 1),
    ]
    clock.at += timedelta(seconds=10)
    notifier.deliver()
    events = [json.loads(body)["event"] for _, body in hook.posts]
    assert events[2:] == ["finding.open", "finding.resolved"]


def test_a_clock_that_is_set_back_delays_nothing(store, hook, clock):
    """The message is tried again, and the alert does not expire, as if it had been right."""
    target = Alertmanager(url=hook.url, wait_s=0.0, timeout_s=5)
    notifier = Notifier(store, Plan((target,), now=clock.now))
    fail(store)
    hook.answers.append((503, {}))
    posts = []
    for after_s in (3_600, -3_600, target.expires_s / 2):
        clock.at += timedelta(seconds=after_s)
        round_of(notifier)
        posts.append(len(hook.posts))

    assert posts == [1, 3, 4]  # refused; taken, and once more as what is open; the same again
    assert [alert["endsAt"] > f"{clock.at:%FT%T}" for alert in alerts(hook)[1:]] == [True] * 3


def test_a_message_is_given_up_after_a_day_and_no_build_closes_none(store, clock, own_store):
    """After an update the ledger is empty until it is built: findings have not closed."""
    plan = Plan((Webhook(url=f"http://127.0.0.1:{free_port()}", wait_s=0.0),), now=clock.now)
    fail(store)
    notifier = Notifier(store, plan)
    round_of(notifier)

    clock.at += timedelta(seconds=25 * 3600)
    notifier.deliver()

    assert outbox.pending(store, "webhook") == []
    assert store.read("select given_up_at is not null as is_over from state.notifications").item()
    assert occurrences.seen(own_store(), clock.now(), None) is None


def test_it_runs_in_the_background_of_a_block(store, hook):
    fail(store)
    plan = Plan((Webhook(url=hook.url, wait_s=0.0),), "https://goodput.example")

    with notifying(store, plan):
        until(lambda: hook.posts, "a message is posted")

    (finding,) = json.loads(hook.posts[0][1])["findings"]
    assert finding["subject"] == SUBJECT
    assert finding["url"].startswith("https://goodput.example/findings?finding=")
    assert not any(thread.name == "notify" for thread in threading.enumerate())


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


def test_targets_and_waiting_messages_are_shown_and_a_test_sent(notified, visit, as_person, hook):
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
        panel.send_test(notified, "webhook", "ada")

    as_person(Role.OPERATOR, teams=frozenset({"nlp"}))
    for read in (panel.receivers, panel.waiting):
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
    statuses = {name: row["status"] for name, row in rows.items()}
    assert statuses == {"webhook": "sent", "owner": "sent", "slack": "failed"}
    away = f"http://127.0.0.1:{targets}: no connection (Connection refused)."
    assert rows["slack"]["error"] == away
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

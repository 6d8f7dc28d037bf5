"""The notifier on a real database: outages and restarts lose no message and double none."""

import contextlib
import json
import sys
import threading
from datetime import timedelta

import pytest
from tests.app.notify.conftest import ORIGIN, fail, mend
from tests.app.receivers import free_port, post_office, web
from tests.app.served import program
from tests.until import until

from goodput_app.notify import occurrences
from goodput_app.notify.notifier import Notifier, Plan, notifying
from goodput_messages import outbox
from goodput_messages.targets import Alertmanager, Mail, Webhook
from goodput_queries.database import LocalStore

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


def round_of(notifier):
    notifier.look()
    notifier.deliver()


def alerts(hook):
    """Return the alerts about the source, as they came."""
    came = [alert for _, body in hook.posts for alert in json.loads(body)]
    return [alert for alert in came if SUBJECT in alert["annotations"]["summary"]]


def about_the_source(post):
    return [mail["Subject"] for mail in post.mails if SUBJECT in mail["Subject"]]


@pytest.fixture
def reopened(store):
    """Give what closes the database and opens it again, as a restart does."""
    with contextlib.ExitStack() as stack:

        def again():
            store.close()
            return stack.enter_context(contextlib.closing(LocalStore(store.path, threads=1)))

        yield again


def test_after_an_outage_and_a_restart_each_alert_is_delivered_and_resolved_once(
    store, reopened, clock
):
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

    later = reopened()
    clock.at += timedelta(seconds=OUTAGE_S)
    with web(port=web_port) as hook, post_office(port=mail_port) as post:
        notifier = Notifier(later, plan)
        notifier.deliver()
        clock.at += timedelta(seconds=30)
        notifier.deliver()
        mend(later)
        clock.at += timedelta(seconds=30)
        round_of(notifier)
        clock.at += timedelta(seconds=30)
        notifier.deliver()

    opened = [one for one in alerts(hook) if one["endsAt"] > one["startsAt"]]
    ends = [one["endsAt"] for one in opened]
    assert len(about_the_source(post)) == 2
    assert about_the_source(post)[1].startswith("[ticket] Resolved: ")
    assert post.mails[1]["In-Reply-To"] == post.mails[0]["Message-ID"]
    # the message, once more as still open (the first time of the new process), the end
    assert len(ends) == 3
    assert ends[2] < min(ends[:2])
    assert store_is_done(later)
    assert later.read("from marts.live_sources where source = 'notify'").is_empty()


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


def test_a_message_is_given_up_after_a_day(store, clock):
    plan = Plan((Webhook(url=f"http://127.0.0.1:{free_port()}", wait_s=0.0),), now=clock.now)
    fail(store)
    notifier = Notifier(store, plan)
    round_of(notifier)

    clock.at += timedelta(seconds=25 * 3600)
    notifier.deliver()

    assert outbox.pending(store, "webhook") == []
    assert store.read("select given_up_at is not null as is_over from state.notifications").item()


def test_a_new_database_that_was_not_built_yet_closes_nothing(own_store, clock):
    """After an update the ledger is empty until it is built: findings have not closed."""
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

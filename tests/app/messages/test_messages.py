"""Messages: their content by golden files, their targets, and when they are sent again."""

import json
import os
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest
from tests.app.conftest import settings_of
from tests.app.messages.notices import AT_MS, DOWN, HANG, HOSTILE, IDLE, MINUTE_MS, changed
from tests.app.receivers import Clock
from tests.tables import each, gives, refuses

from goodput_app.time_expressions import moment_ms
from goodput_billing.delivery.settings import StatementMail
from goodput_messages import bodies
from goodput_messages.message import finding_url, headline, message
from goodput_messages.retries import PAUSE_MAX_S, PAUSES_S, NotSentError, send_with_retry
from goodput_messages.schedule import last_time, next_time, repeat
from goodput_messages.send import letter
from goodput_messages.targets import AnyTarget, Owner
from goodput_queries.errors import GoodputError

GOLDEN = Path(__file__).with_name("golden")
MANY = tuple(changed(IDLE, finding_key=f"idle{number:08}") for number in range(25))
MESSAGES = {
    "one": message("slack", "open", (HANG,), AT_MS),
    "several": message("slack", "repeat", (HANG, IDLE, DOWN), AT_MS, answers="finding-first"),
    "many": message("slack", "open", MANY, AT_MS),
    "resolved": message("slack", "resolved", (IDLE,), AT_MS, answers="finding-first"),
    "owner": message("owner", "open", (IDLE,), AT_MS, recipient="ann"),
    "hostile": message("slack", "open", (HOSTILE,), AT_MS),
}
PEOPLE = ("one", "several", "owner", "resolved", "hostile")


def pretty(body):
    return json.dumps(json.loads(body), ensure_ascii=False, indent=1) + "\n"


def alerts(content):
    ends_ms = AT_MS if content.event == "resolved" else AT_MS + 15 * MINUTE_MS
    return pretty(bodies.alerts(content.notices, ends_ms=ends_ms))


def forms():
    found = {}
    for name in PEOPLE:
        content = MESSAGES[name]
        made = letter(content)
        found[f"{name}.txt"] = f"Subject: {made.subject}\n\n{made.text}\n{made.html}\n"
        found[f"{name}.webhook.json"] = pretty(bodies.own(content))
        if name in ("one", "hostile", "resolved"):
            found[f"{name}.alerts.json"] = alerts(content)
        if name in ("several", "hostile"):
            found[f"{name}.slack.json"] = pretty(bodies.slack(content))
            found[f"{name}.teams.json"] = pretty(bodies.teams(content))
    return found


FORMS = forms()
if os.environ.get("GOODPUT_REWRITE_GOLDEN"):
    for name, text in FORMS.items():
        (GOLDEN / name).write_text(text, encoding="utf-8")


def test_each_golden_file_is_of_a_message():
    assert {path.name for path in GOLDEN.iterdir()} == set(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_a_message_has_its_content(name):
    assert FORMS[name] == (GOLDEN / name).read_text(encoding="utf-8")


@each((1, 59, "1 GPU has been idle for 59 min"), (8, 135, "8 GPUs have been idle for 2 h 15 min"))
def test_idle_time_is_in_words(gpus, minutes, words):
    notice = changed(IDLE, idle_gpus=gpus, idle_since_ms=AT_MS - minutes * MINUTE_MS)
    assert words in headline(message("owner", "open", (notice,), AT_MS, recipient="ann"))


def test_a_message_of_a_group_is_called_by_what_they_share_lists_some_and_counts_the_rest():
    text = letter(MESSAGES["many"]).text

    assert headline(MESSAGES["many"]) == (
        "[ticket] 25 findings: Allocated GPUs are idle, cluster lab, team research, run tune (7)"
    )
    assert text.count("What to do") == 20
    assert text.endswith("5 more findings are on the Findings page.\n")
    assert len(json.loads(bodies.own(MESSAGES["many"]))["findings"]) == 25


def test_a_message_has_one_identity_and_links_to_the_window_of_its_finding():
    assert message("slack", "open", (HANG,), AT_MS) == MESSAGES["one"]
    assert message("slack", "open", (HANG,), AT_MS + 1).identity != MESSAGES["one"].identity
    assert message("mail", "open", (HANG,), AT_MS).identity != MESSAGES["one"].identity
    assert finding_url("https://goodput.example.org/", "abc", AT_MS, AT_MS + 999) == (
        "https://goodput.example.org/findings?finding=abc"
        "&from=2026-11-20T09%3A00%3A00Z&to=2026-11-20T09%3A00%3A00Z"
    )
    assert finding_url(None, "abc", AT_MS, AT_MS) is None
    assert moment_ms("2026-11-20T09:00:00Z", datetime.now(UTC)) == AT_MS


def sending(*answers, is_over=False):
    """Return what came of sending to a server with these answers, and how long was waited.

    is_over: whether a pause ends it
    """
    left, pauses = iter(answers), []

    def channel(_had):
        answer = next(left)
        if isinstance(answer, GoodputError):
            raise answer
        return answer

    def wait(seconds):
        pauses.append(seconds)
        return is_over

    return send_with_retry(channel, (), wait), pauses


def away(wait_s=0.0):
    return NotSentError("away.", is_transient=True, wait_s=wait_s)


@each({
    "away until it takes it": ([away(), away(), ("a",)], 3, None, False),
    "stays away": ([away()] * 9, len(PAUSES_S) + 1, "away.", True),
    "refuses for good": ([NotSentError("no.")], 1, "no.", False),
})  # fmt: skip
def test_what_is_away_is_asked_again_for_a_while(answers, attempts, error, is_for_later):
    sent, pauses = sending(*answers)

    assert (sent.attempts, sent.is_for_later) == (attempts, is_for_later)
    assert (None if sent.error is None else str(sent.error)) == error
    assert pauses == list(PAUSES_S[: attempts - 1])
    assert sent.recipients == (() if error else ("a",))


@pytest.mark.parametrize(("asked_s", "waited_s"), [(5.0, 5.0), (1.0, 2.0), (86_400.0, PAUSE_MAX_S)])
def test_a_server_may_ask_for_a_longer_pause_which_its_own_end_ends(asked_s, waited_s):
    assert sending(away(asked_s), ())[1] == [waited_s]
    sent, pauses = sending(away(asked_s), (), is_over=True)
    assert (sent.attempts, sent.error is None, pauses) == (1, False, [waited_s])


BERLIN = ZoneInfo("Europe/Berlin")


@each(
    ("2026-11-20T06:00", "07:00", "2026-11-20T06:00", "2026-11-21T06:00"),
    ("2026-11-20T05:59", "07:00", "2026-11-19T06:00", "2026-11-20T06:00"),
    # the clocks skip 02:30 on 29 March: an hour later, once
    ("2026-03-29T12:00", "02:30", "2026-03-29T01:30", "2026-03-30T00:30"),
    # they show 02:30 twice on 25 October: the first, once
    ("2026-10-25T00:30", "02:30", "2026-10-25T00:30", "2026-10-26T01:30"),
    ("2026-10-25T01:45", "02:30", "2026-10-25T00:30", "2026-10-26T01:30"),
)
def test_a_time_of_day_comes_once_a_day_whatever_the_clocks_do(now, at, last, following):
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    clock = time.fromisoformat(at)

    found = last_time(clock, BERLIN, moment), next_time(clock, BERLIN, moment)

    assert [one.strftime("%Y-%m-%dT%H:%M") for one in found] == [last, following]


def test_what_is_planned_is_looked_at_where_the_clock_was_set_back():
    began = datetime(2026, 11, 20, 12, tzinfo=UTC)
    clock, looks = Clock(began), []

    class Over:
        steps = iter([-3600, 600, 600])

        def is_set(self):
            return len(looks) == 2

        def wait(self, _):
            clock.at += timedelta(seconds=next(self.steps))

    repeat(lambda: looks.append(clock.at) or 900.0, clock.now, Over())

    assert looks == [began, began - timedelta(hours=1)]


SLACK = 'to = "slack"\nurl = "https://hooks.example/T0/secret"\n'
KINDS = "alertmanager, webhook, slack, teams, mail, owner"
COMMON = (
    "name, rules, min_severity, teams, clusters, group_by, wait_s, repeat_h, "
    "page_repeat_h, send_resolved, digest_at, timeout_s, ca_file"
)

test_a_target_that_makes_no_sense_is_refused = refuses(
    GoodputError,
    lambda text: settings_of(f"[[notify]]\n{text}\n"),
    ("", f"'notify.to' is None, expected one of {KINDS}."),
    ("to = 'slack'", "'notify' needs one of url, url_env and url_file, and no second of them."),
    ("to = 'slack'\nurl = 'a b'", "'notify.url' is not a URL; expected like https://"),
    (f"{SLACK}channel = 'x'",
     f"there is no setting 'notify.channel' for 'slack'; known: {COMMON}, url, url_env, "
     "url_file, token_env, token_file."),
    (f"{SLACK}rules = [1]", "'notify.rules' is [1], expected a list of texts in quotes."),
    (f"{SLACK}wait_s = -1", "'notify.wait_s' is -1, expected seconds from 0 on."),
    (f"{SLACK}digest_at = '24:00'",
     "'notify.digest_at' is '24:00', expected a time in UTC such as '07:30'."),
    ('to = "alertmanager"\nurl = "http://a.example:9093"\ndigest_at = "07:30"',
     "'notify.digest_at' is not for an Alertmanager, which sends by its own routes."),
    (f"{SLACK}min_severity = 'bad'",
     "'notify.min_severity' is 'bad', expected one of page, ticket."),
    (f"{SLACK}group_by = ['gpu']",
     "'notify.group_by' is 'gpu', expected one of rule, severity, cluster, team, node, run."),
    ("to = 'webhook'\nurl = 'http://127.0.0.1.example'\ntoken_env = 'T'",
     "'notify.url' is http, which would send the token in the clear; expected https."),
    ("to = 'mail'", "'notify.addresses' names nobody, expected a list of addresses."),
    ("to = 'mail'\naddresses = ['ops']",
     "'notify.addresses' has 'ops', expected an address like ops@example.org."),
    ("to = 'owner'\naddress = 'ann@example.org'",
     "'notify.address' is 'ann@example.org', expected like {user}@example.org."),
    ("to = 'owner'", "'notify.address' is not set, expected like {user}@example.org"),
    ("to = 'owner'\naddresses = {ann = 3}",
     "'notify.addresses' is {'ann': 3}, expected a table of texts in quotes."),
    ("to = 'owner'\naddress = '{user}@x.org'\naddresses = 3",
     "'notify.addresses' is a table; write it as [notify.addresses]."),
    (f"{SLACK}[[notify]]\n{SLACK}",
     "two [[notify]] tables are named 'slack', expected a 'name' of its own each."),
)  # fmt: skip

test_targets_are_a_list = refuses(
    GoodputError,
    settings_of,
    *(
        (text, "'notify' is a list; write each target as")
        for text in ("notify = 1", "[notify]", "notify = {to = 'slack'}")
    ),
)

test_a_user_name_of_others_makes_no_address_elsewhere = gives(
    Owner(address="{user}@example.org", addresses={"ann": "ann.lee@example.org"}).address_of,
    ("bob", "bob@example.org"), ("ann", "ann.lee@example.org"), ("eve@evil.example,x", None),
    ("eve\r\nBcc: all", None), ("", None), (None, None),
)  # fmt: skip


def test_a_mail_target_without_a_host_uses_the_server_of_statements():
    target = msgspec.convert({"to": "mail", "addresses": ["ops@example.org"]}, AnyTarget)
    report = StatementMail(host="smtp.example", sender="g@example.org", to=("f@example.org",))

    server = target.server(("ops@example.org",), report)

    assert (server.origin, server.sender, server.to) == (
        "smtp.example:587", "g@example.org", ("ops@example.org",),
    )  # fmt: skip
    with pytest.raises(GoodputError, match=r"'notify.host' is not set, .* or in \[report.mail\]"):
        target.server(("ops@example.org",), None)

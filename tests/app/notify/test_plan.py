"""Which messages are due: once when open, again after a time, once when closed, none when silenced.

`Round` plays a target over time, without a database: each look is a round of the notifier.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from tests.app.notify.notices import AT_MS, DOWN, HANG, HOUR_MS, IDLE, MINUTE_MS, changed

from goodput_app.notify.plan import Occurrence, Seen, due
from goodput_app.notify.settings import Alertmanager, Mail, Owner, Slack, Target

if TYPE_CHECKING:
    from goodput_app.notify.message import Message, Notice

URL = "https://hooks.example/x"


@dataclass
class Round:
    """A target, what it has been sent, and the time."""

    target: Target
    now_ms: int = AT_MS
    known: dict[str, Occurrence] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    sent_today: dict[str, int] = field(default_factory=dict)

    def look(
        self,
        *notices: Notice,
        after_ms: int = 0,
        frozen: tuple[str, ...] = (),
        unsent: tuple[str, ...] = (),
    ) -> list[tuple[str, list[str]]]:
        """Return event and findings of the messages that are due after some time."""
        self.now_ms += after_ms
        seen = Seen(
            {one.finding_key: one for one in notices}, self.now_ms, frozen, unsent, self.sent_today
        )
        changes = due(self.target, seen, self.known)
        for one in changes.withdrawn:
            del self.known[one.finding_key]
        for one in changes.occurrences:
            if one.ended_ms is None:
                self.known[one.finding_key] = one
            else:
                del self.known[one.finding_key]
        for one in changes.messages:
            self.sent_today[one.recipient] = self.sent_today.get(one.recipient, 0) + 1
        self.messages += changes.messages
        return [(m.event, [n.finding_key for n in m.notices]) for m in changes.messages]


def slack(**values):
    return Round(Slack(**{"url": URL, "wait_s": 0.0, **values}))  # type: ignore[arg-type]


def test_a_finding_is_sent_once_and_once_when_it_has_closed():
    target = slack()

    assert target.look(HANG) == [("open", ["hang00000001"])]
    assert target.look(HANG, after_ms=MINUTE_MS) == []
    assert target.look(after_ms=MINUTE_MS) == [("resolved", ["hang00000001"])]
    assert target.look(after_ms=MINUTE_MS) == []
    opened, resolved = target.messages
    assert resolved.answers == opened.identity != resolved.identity


def test_seen_again_later_it_is_another_occurrence():
    target = slack()
    target.look(HANG)
    target.look()

    assert target.look(HANG, after_ms=HOUR_MS) == [("open", ["hang00000001"])]
    assert target.messages[0].identity != target.messages[2].identity


def test_findings_of_one_group_wait_for_each_other():
    target = slack(wait_s=60.0)
    second = changed(IDLE, finding_key="idle00000002")

    assert target.look(IDLE) == []
    assert target.look(IDLE, second, DOWN, after_ms=40_000) == []
    assert target.look(IDLE, second, DOWN, after_ms=30_000) == [
        ("open", ["idle00000001", "idle00000002"])
    ]
    assert target.look(IDLE, second, DOWN, after_ms=30_000) == [("open", ["down00000001"])]


def test_a_finding_that_closes_while_it_waits_is_not_sent():
    target = slack(wait_s=60.0)
    target.look(HANG)

    assert target.look(after_ms=30_000) == []
    assert target.look(after_ms=HOUR_MS) == []
    assert target.known == {}


def test_an_open_finding_is_sent_again_after_a_time():
    target = slack(repeat_h=4.0)
    target.look(HANG)

    assert target.look(HANG, after_ms=4 * HOUR_MS - 1) == []
    assert target.look(HANG, after_ms=1) == [("repeat", ["hang00000001"])]
    assert target.look(HANG, after_ms=HOUR_MS) == []
    assert target.messages[1].answers == target.messages[0].identity


def test_no_repetition_is_queued_behind_a_message_that_was_not_sent():
    target = slack(repeat_h=4.0)
    target.look(HANG)

    assert target.look(HANG, after_ms=9 * HOUR_MS, unsent=("hang00000001",)) == []


def test_a_finding_that_gets_worse_is_sent_at_once():
    target = slack()
    target.look(DOWN)

    assert target.look(changed(DOWN, severity="critical"), after_ms=1) == [
        ("repeat", ["down00000001"])
    ]
    assert target.look(DOWN, after_ms=1) == []


@pytest.mark.parametrize(
    ("state", "when_closed"),
    [("acknowledged", [("resolved", ["hang00000001"])]), ("dismissed", [])],
)
def test_what_people_silence_is_not_repeated(state, when_closed):
    target = slack(repeat_h=4.0)
    target.look(HANG)

    assert target.look(changed(HANG, state=state), after_ms=9 * HOUR_MS) == []
    assert target.look(after_ms=1) == when_closed


def test_what_is_silenced_before_it_is_sent_is_never_sent():
    target = slack(wait_s=60.0)
    target.look(HANG)

    assert target.look(changed(HANG, state="dismissed"), after_ms=HOUR_MS) == []
    assert target.look(after_ms=HOUR_MS) == []


def test_what_is_reopened_is_sent_again():
    target = slack(repeat_h=4.0)
    target.look(HANG)
    target.look(changed(HANG, state="acknowledged"), after_ms=HOUR_MS)

    assert target.look(HANG, after_ms=3 * HOUR_MS) == [("repeat", ["hang00000001"])]


def test_old_evidence_opens_and_closes_nothing():
    """A server whose sources stopped, or that took in files of last month, knows nothing of now."""
    target = slack()

    assert target.look(HANG, frozen=("lab",)) == []
    assert target.look(HANG) == [("open", ["hang00000001"])]
    assert target.look(frozen=("lab",)) == []
    assert target.look() == [("resolved", ["hang00000001"])]


def test_resolved_messages_can_be_off():
    target = slack(send_resolved=False)
    target.look(HANG)

    assert target.look() == []
    assert target.look(HANG, after_ms=1) == [("open", ["hang00000001"])]


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ({}, {"hang00000001", "idle00000001", "down00000001"}),
        ({"min_severity": "critical"}, {"hang00000001"}),
        ({"rules": ("node_down",)}, {"down00000001"}),
        ({"teams": ("research",)}, {"hang00000001", "idle00000001"}),
        ({"clusters": ("other",)}, set()),
    ],
)
def test_filters_leave_what_a_target_is_to_get(filters, keys):
    target = slack(**filters)
    target.look(HANG, IDLE, DOWN, changed(DOWN, finding_key="info", severity="info"))

    assert {n.finding_key for m in target.messages for n in m.notices} == keys


def test_a_target_is_not_sent_that_it_fails_itself():
    failing = changed(
        DOWN, finding_key="fail", rule="source_failing", subject="notify slack", cluster=None
    )

    assert slack().look(failing) == []
    assert slack(name="other").look(failing) == [("open", ["fail"])]


def test_an_alertmanager_gets_the_end_when_people_silence_or_severity_changes():
    target = Round(Alertmanager(url=URL, wait_s=0.0, repeat_h=1.0))

    assert target.look(HANG, IDLE) == [("open", ["hang00000001", "idle00000001"])]
    assert target.look(HANG, IDLE, after_ms=9 * HOUR_MS) == []
    worse = changed(IDLE, severity="critical")
    silenced = changed(HANG, state="acknowledged")
    assert target.look(silenced, worse) == [("resolved", ["hang00000001", "idle00000001"])]
    assert target.look(silenced, worse) == [("open", ["idle00000001"])]


def test_owners_get_what_they_can_mend_and_no_more_than_some_a_day():
    target = Round(Owner(address="{user}@example.org", wait_s=0.0, max_per_day=2))
    others = [
        changed(IDLE, finding_key="of bob", user="bob"),
        changed(IDLE, finding_key="of a stranger", user="eve@evil.example"),
        changed(IDLE, finding_key="of nobody", user=None),
        changed(HANG, finding_key="of operations", owner="operations"),
    ]

    assert target.look(IDLE, *others) == [("open", ["idle00000001"]), ("open", ["of bob"])]
    assert [m.recipient for m in target.messages] == ["ann", "bob"]
    assert target.look(IDLE, HANG) == [("resolved", ["of bob"]), ("open", ["hang00000001"])]
    third = changed(HANG, finding_key="third", rule="input_stall")
    assert target.look(IDLE, HANG, third) == []
    target.sent_today.clear()  # a day later
    assert target.look(IDLE, HANG, third) == [("open", ["third"])]


def test_mail_to_all_has_no_recipient_of_its_own():
    target = Round(Mail(addresses=("ops@example.org",), wait_s=0.0))
    target.look(HANG)

    assert target.messages[0].recipient == ""

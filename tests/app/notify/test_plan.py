"""Which messages are due: once when open, again after a time, once when closed, none when silenced.

`Round` plays a target over time, without a database: each look is a round of the notifier.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.app.messages.notices import AT_MS, DOWN, HANG, HOUR_MS, IDLE, MINUTE_MS, changed
from tests.tables import each

from goodput_app.notify.plan import Occurrence, Seen, due
from goodput_messages.targets import Alertmanager, Owner, Slack, Target

URL = "https://hooks.example/x"


@dataclass
class Round:
    """A target, what it has been sent, and the time."""

    target: Target
    now_ms: int = AT_MS
    known: dict[str, Occurrence] = field(default_factory=dict)
    messages: list = field(default_factory=list)
    sent_today: dict[str, int] = field(default_factory=dict)

    def look(self, *notices, after_ms=0, frozen=(), unsent=()):
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
    return Round(Slack(**{"url": URL, "wait_s": 0.0, **values}))


SECOND = changed(IDLE, finding_key="idle00000002")
SILENCED, DISMISSED = (changed(HANG, state=state) for state in ("acknowledged", "dismissed"))
IGNORED = changed(IDLE, state="dismissed")
WORSE = changed(DOWN, severity="page")
OPEN, AGAIN, CLOSED = ([(event, ["hang00000001"])] for event in ("open", "repeat", "resolved"))
OLD = {"frozen": ("lab",)}  # of a server whose sources stopped: it knows nothing of now
DIGEST_AT = f"{datetime.fromtimestamp(AT_MS / 1000 + 5_400, UTC):%H:%M}"  # in one and a half hours
WAITS, REPEATS = {"wait_s": 60.0}, {"page_repeat_h": 4.0}


# what the target is like; then for each look: what is open, after how long, what is due
@each({
    "sent once, and once when it has closed": (
        {}, [((HANG,), 0, OPEN), ((HANG,), MINUTE_MS, []), ((), MINUTE_MS, CLOSED), ((), 1, [])],
    ),
    "findings of one group wait for each other": (WAITS,
        [((IDLE,), 0, []), ((IDLE, SECOND, DOWN), 40_000, []),
         ((IDLE, SECOND, DOWN), 30_000, [("open", ["idle00000001", "idle00000002"])]),
         ((IDLE, SECOND, DOWN), 30_000, [("open", ["down00000001"])])]),
    "a clock that is set back holds nothing up, and doubles nothing": (
        WAITS | {"page_repeat_h": 0.5},
        [((IDLE, HANG), HOUR_MS, OPEN), ((IDLE, HANG), -HOUR_MS, [("open", ["idle00000001"])]),
         ((IDLE, HANG), HOUR_MS, []), ((IDLE,), MINUTE_MS, CLOSED)],
    ),
    "one that closes while it waits is not sent": (
        WAITS, [((IDLE,), 0, []), ((), 30_000, []), ((), HOUR_MS, [])],
    ),
    "a page waits for no other, and is sent again each half hour": (WAITS | {"page_repeat_h": 0.5},
        [((HANG, IDLE), 0, OPEN), ((HANG,), 30 * MINUTE_MS - 1, []), ((HANG,), 1, AGAIN),
         ((), MINUTE_MS, CLOSED)]),
    "a ticket is sent again after a day": ({},
        [((DOWN,), 0, [("open", ["down00000001"])]), ((DOWN,), 24 * HOUR_MS - 1, []),
         ((DOWN,), 1, [("repeat", ["down00000001"])])]),
    "a page that is over is resolved, and what is left of it is a ticket": ({},
        [((WORSE,), 0, [("open", ["down00000001"])]),
         ((DOWN,), 1, [("resolved", ["down00000001"])]),
         ((DOWN,), 1, [("open", ["down00000001"])])]),
    "one that gets worse is sent at once": ({},
        [((DOWN,), 0, [("open", ["down00000001"])]), ((WORSE,), 1, [("repeat", ["down00000001"])]),
         ((WORSE,), 1, [])]),
    "what people acknowledge is not repeated": (
        REPEATS, [((HANG,), 0, OPEN), ((SILENCED,), 9 * HOUR_MS, []), ((), 1, CLOSED)],
    ),
    "what people dismiss is over": (
        REPEATS, [((HANG,), 0, OPEN), ((DISMISSED,), 9 * HOUR_MS, []), ((), 1, [])],
    ),
    "what is silenced before it is sent is never sent": (
        WAITS, [((IDLE,), 0, []), ((IGNORED,), HOUR_MS, []), ((), HOUR_MS, [])],
    ),
    "what is reopened is sent again": (
        REPEATS, [((HANG,), 0, OPEN), ((SILENCED,), HOUR_MS, []), ((HANG,), 3 * HOUR_MS, AGAIN)],
    ),
    "a digest has all open tickets once a day, and no end of one": (
        {"digest_at": DIGEST_AT, "wait_s": 0.0},
        [((IDLE,), 0, []), ((IDLE, DOWN), HOUR_MS, []),
         ((IDLE, DOWN), HOUR_MS, [("open", ["down00000001", "idle00000001"])]),
         ((IDLE, DOWN), HOUR_MS, []), ((DOWN,), HOUR_MS, []),
         ((DOWN, SECOND), 22 * HOUR_MS, [("open", ["down00000001", "idle00000002"])])],
    ),
    "a page does not wait for the digest": (
        {"digest_at": DIGEST_AT}, [((HANG, IDLE), 0, OPEN), ((IDLE,), 1, CLOSED)],
    ),
    "resolved messages can be off": (
        {"send_resolved": False}, [((HANG,), 0, OPEN), ((), 0, []), ((HANG,), 1, OPEN)],
    ),
})  # fmt: skip
def test_each_look_sends_what_is_due(options, looks):
    target = slack(**options)

    found = [target.look(*notices, after_ms=after_ms) for notices, after_ms, _ in looks]

    assert found == [due_ for *_, due_ in looks]


def test_messages_of_an_occurrence_answer_the_first_and_a_later_occurrence_is_another():
    target = slack(page_repeat_h=4.0)
    for notices, after_ms in (((HANG,), 0), ((HANG,), 4 * HOUR_MS), ((), 1), ((HANG,), HOUR_MS)):
        target.look(*notices, after_ms=after_ms)

    opened, repeated, resolved, later = target.messages
    assert opened.identity == repeated.answers == resolved.answers
    assert len({one.identity for one in target.messages}) == 4
    assert later.event == "open"


def test_old_evidence_opens_and_closes_nothing_and_nothing_is_queued_behind_what_was_not_sent():
    target = slack(page_repeat_h=4.0)

    assert target.look(HANG, **OLD) == []
    assert target.look(HANG) == OPEN
    assert target.look(HANG, after_ms=9 * HOUR_MS, unsent=("hang00000001",)) == []
    assert target.look(**OLD) == []
    assert target.look() == CLOSED
    assert target.known == {}


@each(
    ({}, {"hang00000001", "idle00000001", "down00000001"}),
    ({"min_severity": "page"}, {"hang00000001"}), ({"rules": ("node_down",)}, {"down00000001"}),
    ({"teams": ("research",)}, {"hang00000001", "idle00000001"}), ({"clusters": ("other",)}, set()),
)  # fmt: skip
def test_filters_leave_what_a_target_is_to_get(filters, keys):
    target = slack(**filters)
    target.look(HANG, IDLE, DOWN, changed(DOWN, finding_key="note", severity="note"))

    assert {n.finding_key for m in target.messages for n in m.notices} == keys

    own = {"rule": "source_failing", "subject": "notify slack", "cluster": None}
    failing = changed(DOWN, finding_key="fail", **own)
    assert slack().look(failing) == [], "that it fails itself"
    assert slack(name="other").look(failing) == [("open", ["fail"])]


def test_an_alertmanager_gets_the_end_when_people_silence_or_severity_changes():
    target = Round(Alertmanager(url=URL, wait_s=0.0, repeat_h=1.0))

    assert target.look(HANG, IDLE) == [("open", ["hang00000001", "idle00000001"])]
    assert target.look(HANG, IDLE, after_ms=9 * HOUR_MS) == []
    worse = changed(IDLE, severity="page")
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

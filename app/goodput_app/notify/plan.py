"""Which messages are due: open findings against what a target was sent before. No database, no net.

An occurrence of a finding begins when it is first seen open and ends when it has closed. It waits
for others of its group, is sent, is sent again while it is open, and is sent once as resolved. A
page waits for nobody, is sent again each half hour, and is resolved when it is a page no more.
Where a target has a digest, all open tickets are one message a day, and their end is none.
What people acknowledged is not repeated; what they dismissed is not mentioned again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from goodput_messages.message import Event, Message, Notice, message
from goodput_messages.targets import Alertmanager, Owner, Target
from goodput_queries.catalog.rules import SEVERITIES

FAILING_RULE, OWN_SOURCE = "source_failing", "notify"
DISMISSED = "dismissed"
PAGE = SEVERITIES[0]


@dataclass(frozen=True)
class Occurrence:
    """An occurrence of a finding for one target; see state.notified_findings. Times in epoch ms."""

    target: str
    finding_key: str
    seen_ms: int
    notice: Notice
    first_id: str | None = None
    notified_ms: int | None = None
    silenced: str | None = None
    ended_ms: int | None = None


@dataclass(frozen=True)
class Seen:
    """What there is to decide by.

    notices: open findings by key, acknowledged and dismissed ones too. frozen: clusters whose
    evidence is too old: nothing of them begins or ends. unsent: keys of findings in messages that
    are still to be sent. sent_today: messages of the last 24 hours by recipient. waits: whether a
    finding waits for others of its group.
    """

    notices: Mapping[str, Notice]
    now_ms: int
    frozen: Collection[str] = ()
    unsent: Collection[str] = ()
    sent_today: Mapping[str, int] = field(default_factory=dict)
    waits: bool = True


@dataclass
class Changes:
    """What is to be written in one transaction."""

    occurrences: list[Occurrence] = field(default_factory=list)
    withdrawn: list[Occurrence] = field(default_factory=list)  # closed before they were sent
    messages: list[Message] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.occurrences or self.withdrawn or self.messages)


def due(target: Target, seen: Seen, known: Mapping[str, Occurrence]) -> Changes:
    """Return what is to be written for a target. known: its occurrences that have not ended."""
    changes = Changes()
    by_event: dict[Event, list[Occurrence]] = {"resolved": [], "open": [], "repeat": []}
    for key, before in known.items():
        notice = seen.notices.get(key)
        if notice is None or _is_page_over(before.notice, notice):
            _close(before, target, seen, changes, by_event)
        else:
            _go_on(before, notice, target, seen, changes, by_event)
    for key, notice in seen.notices.items():
        is_new = key not in known and notice.cluster not in seen.frozen
        if is_new and notice.state == "open" and _wants(target, notice):
            occurrence = Occurrence(target.label, key, seen.now_ms, notice)
            changes.occurrences.append(occurrence)
            by_event["open"].append(occurrence)
    left = _Allowance(target, seen.sent_today)
    for event, occurrences in by_event.items():
        for recipient, members in _groups(target, occurrences):
            if event != "open" or _has_waited(target, members, seen):
                _write(target, event, recipient, members, seen.now_ms, changes, left)
    return changes


def _close(
    before: Occurrence,
    target: Target,
    seen: Seen,
    changes: Changes,
    by_event: dict[Event, list[Occurrence]],
) -> None:
    """End an occurrence whose finding is no longer open."""
    if before.notice.cluster in seen.frozen:
        return
    if before.first_id is None:
        changes.withdrawn.append(before)
        return
    ended = replace(before, ended_ms=seen.now_ms)
    changes.occurrences.append(ended)
    is_sent = target.send_resolved and not _is_of_digest(target, before.notice)
    if is_sent and before.silenced != DISMISSED:
        by_event["resolved"].append(ended)


def _is_page_over(before: Notice, notice: Notice) -> bool:
    """Return whether a page ended: what is left of it is another occurrence."""
    return before.severity == PAGE != notice.severity


def _go_on(
    before: Occurrence,
    notice: Notice,
    target: Target,
    seen: Seen,
    changes: Changes,
    by_event: dict[Event, list[Occurrence]],
) -> None:
    """Decide about an occurrence whose finding is still open."""
    silenced = notice.state if notice.state != "open" else None
    if before.first_id is None:
        if silenced:
            changes.withdrawn.append(before)
        elif notice.cluster not in seen.frozen:
            by_event["open"].append(replace(before, notice=notice))
        return
    if isinstance(target, Alertmanager):
        is_other = _rank(notice) != _rank(before.notice)  # severity is a label: another alert
        if silenced or is_other:
            ended = replace(before, silenced=silenced, ended_ms=seen.now_ms)
            changes.occurrences.append(ended)
            by_event["resolved"].append(ended)
        return
    if silenced != before.silenced:
        before = replace(before, silenced=silenced)
        changes.occurrences.append(before)
    if silenced is None and notice.finding_key not in seen.unsent and _wants(target, notice):
        if _is_of_digest(target, notice):
            if target.has_digest_since(before.notified_ms or 0, seen.now_ms):
                by_event["open"].append(replace(before, notice=notice))
            return
        is_worse = _rank(notice) < _rank(before.notice)
        past_ms = seen.now_ms - (before.notified_ms or 0)
        repeat_h = target.page_repeat_h if notice.severity == PAGE else target.repeat_h
        if is_worse or 0 < repeat_h * 3_600_000 <= past_ms:
            by_event["repeat"].append(replace(before, notice=notice))


def _write(
    target: Target,
    event: Event,
    recipient: str,
    members: list[Occurrence],
    now_ms: int,
    changes: Changes,
    left: _Allowance,
) -> None:
    """Add the message of a group, and that its findings are in one."""
    if not left.take(recipient):
        return  # those that are open wait, those that have ended are not mentioned
    notices = tuple(one.notice for one in _ordered(members))
    answers = None if event == "open" else _ordered(members)[0].first_id
    made = message(target.label, event, notices, now_ms, recipient=recipient, answers=answers)
    changes.messages.append(made)
    if event != "resolved":
        written = {(one.finding_key, one.seen_ms) for one in members}
        changes.occurrences = [
            one for one in changes.occurrences if (one.finding_key, one.seen_ms) not in written
        ]
        changes.occurrences += [
            replace(one, first_id=one.first_id or made.identity, notified_ms=now_ms)
            for one in members
        ]


class _Allowance:
    """How many messages each owner of jobs may still get today."""

    def __init__(self, target: Target, sent_today: Mapping[str, int]) -> None:
        self._most = target.max_per_day if isinstance(target, Owner) else None
        self._sent = dict(sent_today)

    def take(self, recipient: str) -> bool:
        """Return whether one more may go, and count it."""
        if self._most is None:
            return True
        count = self._sent.get(recipient, 0)
        self._sent[recipient] = count + 1
        return count < self._most


def _wants(target: Target, notice: Notice) -> bool:
    """Return whether a target is to get a finding."""
    if isinstance(target, Owner):
        is_theirs = notice.owner == "team" and notice.run is not None
        if not is_theirs or target.address_of(notice.user) is None:
            return False
    # the others are notified that a target fails
    is_itself = notice.rule == FAILING_RULE and notice.subject == f"{OWN_SOURCE} {target.label}"
    return (
        not is_itself
        and notice.severity in target.severities
        and (not target.rules or notice.rule in target.rules)
        and (not target.teams or notice.team in target.teams)
        and (not target.clusters or notice.cluster in target.clusters)
    )


def _groups(
    target: Target, occurrences: Iterable[Occurrence]
) -> list[tuple[str, list[Occurrence]]]:
    """Return (recipient, members) of each message."""
    found: dict[tuple[object, ...], list[Occurrence]] = defaultdict(list)
    for one in occurrences:
        recipient = (one.notice.user or "") if isinstance(target, Owner) else ""
        is_of_digest = _is_of_digest(target, one.notice)
        names = () if is_of_digest else target.group_by
        common = tuple(getattr(one.notice, name) for name in names)
        found[recipient, is_of_digest, *common].append(one)
    return [(str(key[0]), members) for key, members in found.items()]


def _has_waited(target: Target, members: list[Occurrence], seen: Seen) -> bool:
    first_ms = min(one.seen_ms for one in members)
    if any(one.notice.severity == PAGE for one in members) or not seen.waits:
        return True
    if target.digest_at is not None:
        return target.has_digest_since(first_ms, seen.now_ms)
    # where the clock was set back it was first seen in the future, and has waited
    return not 0 <= seen.now_ms - first_ms < target.wait_s * 1000


def _is_of_digest(target: Target, notice: Notice) -> bool:
    return target.digest_at is not None and notice.severity != PAGE


def _ordered(members: list[Occurrence]) -> list[Occurrence]:
    return sorted(
        members, key=lambda one: (_rank(one.notice), one.notice.since_ms, one.finding_key)
    )


def _rank(notice: Notice) -> int:
    return SEVERITIES.index(notice.severity)

"""What a notification says: the findings of one message, and their words for people."""

import hashlib
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import urlencode

import msgspec

from goodput_messages.printable import printable
from goodput_queries.catalog.rules import SEVERITIES
from goodput_queries.scope import iso

Event = Literal["open", "repeat", "resolved"]
BEGINNINGS = {"open": "", "repeat": "Still open: ", "resolved": "Resolved: "}
FIELD_MAX_CHARS = 300
HEADLINE_MAX_CHARS = 160
FINDINGS_SHOWN = 20  # of a message for people; programs get all
# words of databases and settings before findings were pages, tickets and notes
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


class Notice(msgspec.Struct, frozen=True):
    """A finding as a message has it; times in epoch milliseconds.

    is_cut: it was so when the window begins, and may have begun before. state: what people said of
    it. owner: who can fix it (team, operations). idle_gpus,
    idle_since_ms: GPUs of its run that are idle now. url: its page at its time.
    """

    finding_key: str
    rule: str
    severity: str
    title: str
    subject: str
    since_ms: int
    evidence: str
    what_to_do: str
    is_cut: bool = False
    state: str = "open"
    owner: str | None = None
    cluster: str | None = None
    node: str | None = None
    gpu_index: int | None = None
    run: str | None = None
    team: str | None = None
    user: str | None = None
    gpu_ms: int | None = None
    idle_gpus: int | None = None
    idle_since_ms: int | None = None
    url: str | None = None


class Message(msgspec.Struct, frozen=True):
    """One message to one target. recipient: the user that it is for; empty: all of the target.

    answers: the identity of the first message about the same findings.
    """

    identity: str
    target: str
    event: Event
    notices: tuple[Notice, ...]
    at_ms: int
    recipient: str = ""
    answers: str | None = None


def message(
    target: str,
    event: Event,
    notices: tuple[Notice, ...],
    at_ms: int,
    *,
    recipient: str = "",
    answers: str | None = None,
) -> Message:
    """Return a message whose identity is that of its content, fit for a Message-ID."""
    keys = sorted(one.finding_key for one in notices)
    text = "\x1f".join([target, event, recipient, str(at_ms), *keys])
    identity = f"finding-{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"
    return Message(identity, target, event, notices, at_ms, recipient, answers)


def finding_url(public_url: str | None, key: str, from_ms: int, to_ms: int) -> str | None:
    """Return the page of a finding for the window that it was found in."""
    if public_url is None:
        return None
    query = urlencode({"finding": key, "from": iso(from_ms), "to": iso(to_ms)})
    return f"{public_url.rstrip('/')}/findings?{query}"


def headline(content: Message) -> str:
    """Return a message in one line."""
    begins = BEGINNINGS[content.event]
    first = content.notices[0]
    if len(content.notices) > 1:
        titles = dict.fromkeys(plain(one.title) for one in content.notices)
        what = f": {next(iter(titles))}" if len(titles) == 1 else ""
        place = "".join(f", {where}" for where in _common_places(content.notices))
        line = f"{len(content.notices)} findings{what}{place}"
    elif content.recipient:
        line = f"your run {plain(first.run or '')}: {_owner_line(first, content.at_ms)}"
    else:
        line = f"{plain(first.title)}: {plain(first.subject) or 'the fleet'}"
    worst = next(s for s in SEVERITIES if any(one.severity == s for one in content.notices))
    line = f"{begins}{line}" if begins else f"{line[:1].upper()}{line[1:]}"
    return _cut(f"[{worst}] {line}", HEADLINE_MAX_CHARS)


def lines(notice: Notice, content: Message) -> list[str]:
    """Return what a message says of one finding, a line each; the first names it."""
    named = f"{plain(notice.title)}: {plain(notice.subject) or 'the fleet'}"
    if content.recipient:
        named = f"Run {plain(notice.run or '')}: {_owner_line(notice, content.at_ms)}"
    since = "Since before" if notice.is_cut else "Since"
    found = [named, f"{since} {moment(notice.since_ms)}, {notice.severity}"]
    if notice.cluster:
        found[-1] += f", cluster {plain(notice.cluster)}"
    if notice.evidence:
        found.append(f"Evidence: {plain(notice.evidence)}")
    if content.event == "resolved":
        found.append(f"It was not seen any more at {moment(content.at_ms)}.")
    else:
        found.append(f"What to do: {plain(notice.what_to_do)}")
    return found


def more(content: Message) -> str | None:
    """Return the sentence about findings that a message for people does not list."""
    left = len(content.notices) - FINDINGS_SHOWN
    return f"{left:,} more findings are on the Findings page." if left > 0 else None


def plain(text: str) -> str:
    """Return a text of others in one line without control characters, cut."""
    return _cut(printable(" ".join(text.split())), FIELD_MAX_CHARS)


def moment(at_ms: int) -> str:
    """Return a time for people, in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _owner_line(notice: Notice, at_ms: int) -> str:
    if notice.idle_gpus is None or notice.idle_since_ms is None:
        title = plain(notice.title)
        return f"{title[:1].lower()}{title[1:]}" if title[1:2].islower() else title
    gpus = f"{notice.idle_gpus:,} GPU{'s have' if notice.idle_gpus != 1 else ' has'}"
    span = _duration(at_ms - notice.idle_since_ms)
    return f"{gpus} been idle for {span} (since {moment(notice.idle_since_ms)[11:]})"


def _duration(ms: int) -> str:
    if ms < HOUR_MS:
        return f"{max(ms, 0) // MINUTE_MS} min"
    hours, minutes = divmod(ms // MINUTE_MS, 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def _common_places(notices: tuple[Notice, ...]) -> list[str]:
    """Return the places that all findings of a message share, in words."""
    found = []
    for name in ("cluster", "team", "node", "run"):
        values = {getattr(one, name) for one in notices}
        if len(values) == 1 and (value := values.pop()):
            found.append(f"{name} {plain(value)}")
    return found


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"

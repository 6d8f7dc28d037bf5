"""State of notifications in the database: what was sent, and messages that are still to be sent.

A message is written in the transaction that decides on it and marked once it is taken. A process
that ends in between leaves it to the next one, which sends it again under the same identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import msgspec
import polars as pl

from goodput_app.notify.message import Event, Message, Notice, finding_url
from goodput_app.notify.plan import Occurrence, Seen
from goodput_queries.catalog import models
from goodput_queries.evidence import load
from goodput_queries.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from goodput_app.notify.plan import Changes
    from goodput_queries.database import LocalStore, Store

WINDOW_MS = 24 * 3_600_000  # findings of the last day
LIVE_MS = 3_600_000  # evidence that ends earlier says nothing of now
DAY = timedelta(days=1)
KEPT = timedelta(days=30)  # what was sent before is deleted
AT = pl.Datetime("us")
OCCURRENCES: dict[str, Any] = {
    "target": pl.String, "finding_key": pl.String, "seen_at": AT, "cluster": pl.String,
    "content": pl.String, "first_id": pl.String, "notified_at": AT, "silenced": pl.String,
    "ended_at": AT,
}  # fmt: skip
MESSAGES: dict[str, Any] = {
    "notification_id": pl.String, "target": pl.String, "event": pl.String, "recipient": pl.String,
    "answers_id": pl.String, "finding_keys": pl.List(pl.String), "content": pl.String,
    "created_at": AT, "sent_at": AT, "given_up_at": AT, "attempts": pl.Int32,
    "next_attempt_at": AT, "recipients": pl.List(pl.String), "error": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class Pending:
    """A message that is to be sent. had: of a mail, who has it already. error: of the last try."""

    message: Message
    attempts: int = 0
    next_attempt_ms: int = 0
    had: tuple[str, ...] = ()
    error: str | None = None

    @property
    def keys(self) -> set[str]:
        """Return the findings in it."""
        return {one.finding_key for one in self.message.notices}


def seen(store: Store, now: datetime, public_url: str | None) -> Seen | None:
    """Return the open findings of the last day; None before the first build of a new database."""
    if not store.read("select exists (from state.built) as is_built").item():
        return None
    now_ms = _ms(now)
    from_ms = now_ms - WINDOW_MS
    rows = store.read("select * from marts.open_findings", scope=Scope(from_ms=from_ms))
    clusters = store.read("select cluster, as_of_at from marts.clusters")
    frozen = clusters.filter(pl.col("as_of_at") < _naive(now) - timedelta(milliseconds=LIVE_MS))
    notices = [_notice(row, from_ms, now_ms, public_url) for row in rows.iter_rows(named=True)]
    return Seen({one.finding_key: one for one in notices}, now_ms, set(frozen["cluster"]))


def occurrences(store: Store, target: str) -> dict[str, Occurrence]:
    """Return the occurrences of a target that have not ended, by finding."""
    rows = store.read(
        "select * from state.notified_findings where target = $1 and ended_at is null "
        "order by seen_at",
        [target],
    )
    return {row["finding_key"]: _occurrence(row) for row in rows.iter_rows(named=True)}


def pending(store: Store, target: str) -> list[Pending]:
    """Return the messages that a target is still to get, the oldest first."""
    rows = store.read(
        """select * from state.notifications
        where target = $1 and sent_at is null and given_up_at is null
        order by created_at, case event when 'resolved' then 2 else 1 end, notification_id""",
        [target],
    )
    return [_pending(row) for row in rows.iter_rows(named=True)]


def sent_today(store: Store, target: str, now: datetime) -> Mapping[str, int]:
    """Return how many messages of the last 24 hours each user got, or is to get."""
    rows = store.read(
        """select recipient, count(*) as n from state.notifications
        where target = $1 and created_at > $2 group by recipient""",
        [target, _naive(now) - DAY],
    )
    return dict(rows.iter_rows())


def write(store: LocalStore, changes: Sequence[Changes], now: datetime) -> None:
    """Write what was decided, in one transaction; delete what is old."""
    kept = [_occurrence_row(one) for change in changes for one in change.occurrences]
    made = [_message_row(one) for change in changes for one in change.messages]
    gone = [one for change in changes for one in change.withdrawn]
    before = _naive(now) - KEPT
    with store.writing() as cursor:
        for one in gone:
            cursor.execute(
                "delete from state.notified_findings where (target, finding_key, seen_at) = "
                "($1, $2, $3)",
                [one.target, one.finding_key, _at(one.seen_ms)],
            )
        for table, rows, schema in (
            ("notified_findings", kept, OCCURRENCES),
            ("notifications", made, MESSAGES),
        ):
            model = models.of_layer("state")[table]
            load.insert_keyed(cursor, model, pl.DataFrame(rows, schema=schema), sequence=0)
        cursor.execute("delete from state.notified_findings where ended_at < $1", [before])
        cursor.execute("delete from state.notifications where created_at < $1", [before])


def mark_sent(store: LocalStore, one: Pending, now: datetime, had: Iterable[str]) -> None:
    """Write that a message was taken."""
    with store.writing() as cursor:
        cursor.execute(
            """update state.notifications set sent_at = $2, attempts = $3, recipients = $4,
                next_attempt_at = null, error = null
            where notification_id = $1""",
            [one.message.identity, _naive(now), one.attempts + 1, list(had)],
        )


def mark_failed(
    store: LocalStore, one: Pending, now: datetime, wait_s: float, had: Iterable[str], error: str
) -> None:
    """Write that a message was not taken, and when it is tried again; after a day it is not."""
    is_over = _ms(now) - one.message.at_ms > DAY.total_seconds() * 1000
    with store.writing() as cursor:
        cursor.execute(
            """update state.notifications set attempts = $2, next_attempt_at = $3,
                recipients = $4, error = $5, given_up_at = $6
            where notification_id = $1""",
            [
                one.message.identity,
                one.attempts + 1,
                _naive(now) + timedelta(seconds=wait_s),
                list(had),
                error,
                _naive(now) if is_over else None,
            ],
        )


def _notice(row: Mapping[str, Any], from_ms: int, to_ms: int, public_url: str | None) -> Notice:
    idle_since = row["idle_since_at"]
    since_ms = _ms(row["since_at"]) if row["since_at"] else from_ms
    return Notice(
        finding_key=row["finding_key"],
        rule=row["rule"],
        severity=row["severity"],
        title=row["title"],
        subject=row["subject"] or "",
        since_ms=since_ms,
        evidence=row["evidence"] or "",
        what_to_do=row["what_to_do"] or "",
        is_cut=since_ms <= from_ms,
        state=row["state"],
        owner=row["owner"],
        cluster=row["cluster"],
        node=row["node"],
        gpu_index=row["gpu_index"],
        run=row["run_name"],
        team=row["team"],
        user=row["user_name"],
        gpu_ms=row["gpu_ms"],
        idle_gpus=row["idle_gpus"],
        idle_since_ms=None if idle_since is None else _ms(idle_since),
        url=finding_url(public_url, row["finding_key"], from_ms, to_ms),
    )


def _occurrence(row: Mapping[str, Any]) -> Occurrence:
    return Occurrence(
        target=row["target"],
        finding_key=row["finding_key"],
        seen_ms=_ms(row["seen_at"]),
        notice=msgspec.json.decode(row["content"], type=Notice),
        first_id=row["first_id"],
        notified_ms=None if row["notified_at"] is None else _ms(row["notified_at"]),
        silenced=row["silenced"],
    )


def _occurrence_row(one: Occurrence) -> dict[str, Any]:
    return {
        "target": one.target,
        "finding_key": one.finding_key,
        "seen_at": _at(one.seen_ms),
        "cluster": one.notice.cluster,
        "content": msgspec.json.encode(one.notice).decode(),
        "first_id": one.first_id,
        "notified_at": None if one.notified_ms is None else _at(one.notified_ms),
        "silenced": one.silenced,
        "ended_at": None if one.ended_ms is None else _at(one.ended_ms),
    }


def _pending(row: Mapping[str, Any]) -> Pending:
    notices = msgspec.json.decode(row["content"], type=tuple[Notice, ...])
    message = Message(
        row["notification_id"], row["target"], cast("Event", row["event"]), notices,
        _ms(row["created_at"]), row["recipient"], row["answers_id"],
    )  # fmt: skip
    again = row["next_attempt_at"]
    return Pending(
        message, row["attempts"], 0 if again is None else _ms(again),
        tuple(row["recipients"] or ()), row["error"],
    )  # fmt: skip


def _message_row(one: Message) -> dict[str, Any]:
    return {
        "notification_id": one.identity,
        "target": one.target,
        "event": one.event,
        "recipient": one.recipient,
        "answers_id": one.answers,
        "finding_keys": [notice.finding_key for notice in one.notices],
        "content": msgspec.json.encode(one.notices).decode(),
        "created_at": _at(one.at_ms),
        "attempts": 0,
    }


def _ms(at: datetime) -> int:
    return round(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1000)


def _at(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC).replace(tzinfo=None)


def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)

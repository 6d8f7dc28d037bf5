"""Messages in the database: what was sent, and what is still to be sent.

A message is written in the transaction that decides on it and marked once it is taken. A process
that ends in between leaves it to the next one, which sends it again under the same identity.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import duckdb
import msgspec
import polars as pl

from goodput_messages.message import Event, Message, Notice
from goodput_queries.catalog import models
from goodput_queries.evidence import load
from goodput_queries.scope import epoch_ms, utc_at
from goodput_queries.storage.database_file import DatabaseFile, Reader

DAY = timedelta(days=1)
KEPT = timedelta(days=30)  # what was sent before is deleted
AT = pl.Datetime("us")
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


def pending(store: Reader, target: str) -> list[Pending]:
    """Return the messages that a target is still to get, the oldest first."""
    rows = store.read(
        """select * from state.notifications
        where target = $1 and sent_at is null and given_up_at is null
        order by created_at, case event when 'resolved' then 2 else 1 end, notification_id""",
        [target],
    )
    return [_pending(row) for row in rows.iter_rows(named=True)]


def sent_today(store: Reader, target: str, now: datetime) -> Mapping[str, int]:
    """Return how many messages of the last 24 hours each user got, or is to get."""
    rows = store.read(
        """select recipient, count(*) as n from state.notifications
        where target = $1 and created_at > $2 group by recipient""",
        [target, naive_utc(now) - DAY],
    )
    return dict(rows.iter_rows())


def add(cursor: duckdb.DuckDBPyConnection, messages: Iterable[Message], now: datetime) -> None:
    """Write messages that are to be sent, and delete old ones; the caller has the transaction."""
    frame = pl.DataFrame([_message_row(one) for one in messages], schema=MESSAGES)
    load.insert_keyed(cursor, models.of_layer("state")["notifications"], frame, sequence=0)
    cursor.execute("delete from state.notifications where created_at < $1", [naive_utc(now) - KEPT])


def mark_sent(store: DatabaseFile, one: Pending, now: datetime, had: Iterable[str]) -> None:
    """Write that a message was taken."""
    with store.writing() as cursor:
        cursor.execute(
            """update state.notifications set sent_at = $2, attempts = $3, recipients = $4,
                next_attempt_at = null, error = null
            where notification_id = $1""",
            [one.message.identity, naive_utc(now), one.attempts + 1, list(had)],
        )


def mark_failed(
    store: DatabaseFile, one: Pending, now: datetime, wait_s: float, had: Iterable[str], error: str
) -> None:
    """Write that a message was not taken, and when it is tried again; after a day it is not."""
    is_over = epoch_ms(now) - one.message.at_ms > DAY.total_seconds() * 1000
    with store.writing() as cursor:
        cursor.execute(
            """update state.notifications set attempts = $2, next_attempt_at = $3,
                recipients = $4, error = $5, given_up_at = $6
            where notification_id = $1""",
            [
                one.message.identity,
                one.attempts + 1,
                naive_utc(now) + timedelta(seconds=wait_s),
                list(had),
                error,
                naive_utc(now) if is_over else None,
            ],
        )


def retry_at_once(store: DatabaseFile) -> None:
    """Let no message wait for the time of its next attempt."""
    with store.writing() as cursor:
        cursor.execute(
            "update state.notifications set next_attempt_at = null where sent_at is null"
        )


def _pending(row: Mapping[str, Any]) -> Pending:
    notices = msgspec.json.decode(row["content"], type=tuple[Notice, ...])
    message = Message(
        row["notification_id"], row["target"], cast("Event", row["event"]), notices,
        epoch_ms(row["created_at"]), row["recipient"], row["answers_id"],
    )  # fmt: skip
    again = row["next_attempt_at"]
    return Pending(
        message, row["attempts"], 0 if again is None else epoch_ms(again),
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
        "created_at": utc_at(one.at_ms),
        "attempts": 0,
    }


def naive_utc(at: datetime) -> datetime:
    """Return a time with an offset as naive UTC."""
    return at.astimezone(UTC).replace(tzinfo=None)

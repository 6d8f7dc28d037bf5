"""What people say of a finding: acknowledged, dismissed with a reason, reopened, a note."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, get_args

import polars as pl

from goodput_queries.database import Store
from goodput_queries.errors import GoodputError
from goodput_queries.evidence.batch import Batch

Action = Literal["acknowledge", "dismiss", "reopen", "note"]
NOTE_MAX_CHARS = 500
NAME_MAX_CHARS = 80


def record(
    store: Store,
    finding: Mapping[str, object],
    action: Action,
    *,
    said_by: str,
    note: str | None = None,
) -> None:
    """Store what a person says of a finding; no number changes by it.

    finding: a row of marts.findings. An acknowledgement is of this occurrence alone; a dismissal
    holds for the same rule and subject until it is reopened, and needs a note with the reason.
    Raises GoodputError for an unknown action, a missing reason, an empty name or an overlong text.
    """
    if action not in get_args(Action):
        raise GoodputError(f"{action!r} is none of {', '.join(get_args(Action))}.")
    said_by, note = said_by.strip(), (note or "").strip() or None
    if not said_by or len(said_by) > NAME_MAX_CHARS:
        raise GoodputError(f"A name of 1 to {NAME_MAX_CHARS} characters is needed.")
    if action in ("dismiss", "note") and note is None:
        raise GoodputError("A note is needed: why is it no problem, or what is known of it?")
    if note is not None and len(note) > NOTE_MAX_CHARS:
        raise GoodputError(f"A note has at most {NOTE_MAX_CHARS} characters.")
    since, until = finding["since_at"], finding["until_at"]
    now = datetime.now(UTC).replace(tzinfo=None)
    ends = until if isinstance(until, datetime) else now
    row = {
        "finding_key": finding["finding_key"],
        "rule": finding["rule"],
        "action": action,
        "since_ms": _ms(since) if isinstance(since, datetime) else 0,
        "until_ms": None if action in ("dismiss", "reopen") else _ms(ends),
        "said_by": said_by,
        "note": note,
        "said_at": now,
    }
    frame = pl.DataFrame([row], schema_overrides={"until_ms": pl.Int64, "note": pl.String})
    store.load(Batch("finding_actions", frame, "findings", "findings", uuid.uuid4().hex))
    store.build()  # nothing to compute; the database says again that it is up to date


def _ms(at: datetime) -> int:
    return int(at.replace(tzinfo=UTC).timestamp() * 1000)

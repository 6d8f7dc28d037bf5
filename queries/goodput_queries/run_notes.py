"""Notes of people on runs, for whoever compares them later."""

import uuid
from datetime import UTC, datetime

import polars as pl

from goodput_queries.database import Store
from goodput_queries.errors import GoodputError
from goodput_queries.evidence.batch import Batch

NOTE_MAX_CHARS = 500
NAME_MAX_CHARS = 80


def record(store: Store, run_key: str, note: str, *, said_by: str) -> None:
    """Store a note on a run; no number changes by it.

    Raises GoodputError for an empty or overlong name or note.
    """
    note, said_by = note.strip(), said_by.strip()
    if not said_by or len(said_by) > NAME_MAX_CHARS:
        raise GoodputError(f"A name of 1 to {NAME_MAX_CHARS} characters is needed.")
    if not note or len(note) > NOTE_MAX_CHARS:
        raise GoodputError(f"A note of 1 to {NOTE_MAX_CHARS} characters is needed.")
    now = datetime.now(UTC).replace(tzinfo=None)
    frame = pl.DataFrame([{"run_key": run_key, "note": note, "said_by": said_by, "said_at": now}])
    store.load(Batch("run_notes", frame, "run-notes", "run-notes", uuid.uuid4().hex))
    store.build()  # nothing to compute; the database says again that it is up to date

"""The audit log: who signed in, changed prices, judged findings, downloaded statements."""

import uuid
from datetime import UTC, datetime, timedelta

import polars as pl

from goodput_queries.catalog import models
from goodput_queries.database import LocalStore, Store
from goodput_queries.evidence import load
from goodput_queries.evidence.batch import Batch

TABLE = "audit_log"
KEPT_DAYS = 90
TEXT_MAX_CHARS = 300
COLUMNS = "acted_at, who, action, subject, from_address"


def record(
    store: Store, who: str, action: str, subject: str | None = None, address: str | None = None
) -> None:
    """Store one entry, and drop those older than `KEPT_DAYS`; raises StoreError where that fails.

    It has no row in `state.ingested`, as the status of a source: nothing is to be built for it.
    """
    entry_id = uuid.uuid4().hex
    row = {
        "entry_id": entry_id,
        "acted_at": datetime.now(UTC).replace(tzinfo=None),
        "who": who[:TEXT_MAX_CHARS],
        "action": action[:TEXT_MAX_CHARS],
        "subject": None if subject is None else subject[:TEXT_MAX_CHARS],
        "from_address": address,
    }
    optional = {"subject": pl.String, "from_address": pl.String}
    frame = pl.DataFrame([row], schema_overrides=optional)
    keep(store, Batch(TABLE, frame, "audit", "audit", entry_id))


def keep(store: Store, batch: Batch) -> None:
    """Write entries, or send them to the process that has the database open."""
    if not isinstance(store, LocalStore):
        store.load(batch)
        return
    oldest = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=KEPT_DAYS)
    with store.writing(changes_views=False) as cursor:
        load.insert_keyed(cursor, models.of_layer("state")[TABLE], batch.rows, sequence=0)
        cursor.execute(f"delete from state.{TABLE} where acted_at < $1", [oldest])


def entries(store: Store, limit: int | None = None) -> pl.DataFrame:
    """Return the log, the latest entry first; limit: at most so many, None: all."""
    sql = f"select {COLUMNS} from state.{TABLE} order by acted_at desc, entry_id"
    return store.read(sql + (f" limit {int(limit)}" if limit else ""))

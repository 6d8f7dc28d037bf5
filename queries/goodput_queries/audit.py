"""The audit log: who signed in, changed prices, judged findings, downloaded statements.

Entries are a chain: each has a number and the SHA-256 of itself and of the digest before, so that
one that is changed, or removed between others, is detected. Who can write the database can compute
all digests again: number and digest of the last entry, kept elsewhere, detect that.
"""

import hashlib
import itertools
import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from goodput_queries.catalog import models
from goodput_queries.database import LocalStore, Store
from goodput_queries.evidence import load
from goodput_queries.evidence.batch import Batch

log = logging.getLogger(__name__)

TABLE = "audit_log"
KEPT_DAYS = 90
TEXT_MAX_CHARS = 300
COLUMNS = "acted_at, who, action, subject, from_address"
OF_CHAIN = f"select entry_number, digest, {COLUMNS} from state.{TABLE} where digest is not null"


@dataclass(frozen=True)
class Chain:
    """What the chain of entries shows.

    faults: sentences, none: all entries are as they were written; head: number and digest of the
    last entry, None: there is none.
    """

    entries: int
    head: tuple[int, str] | None
    faults: list[str]


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
    with store.writing(changes_views=False) as cursor:
        known = {row[0] for row in cursor.execute(f"select entry_id from state.{TABLE}").fetchall()}
        new = batch.rows.filter(~pl.col("entry_id").is_in(known))
        last = cursor.execute(f"{OF_CHAIN} order by entry_number desc limit 1").fetchone()
        number, digest = (last[0], last[1]) if last else (0, "")
        rows = []
        for row in new.iter_rows(named=True):
            number, digest = number + 1, _digest(number + 1, row, digest)
            rows.append({**row, "entry_number": number, "digest": digest})
        if not rows:
            return
        chained = pl.DataFrame(rows, schema_overrides=new.schema)
        load.insert_keyed(cursor, models.of_layer("state")[TABLE], chained, sequence=0)
        # the last one of them stays, for what follows to be checked against
        cursor.execute(
            f"""delete from state.{TABLE} where acted_at < $1 and coalesce(entry_number, 0) < (
                select coalesce(max(entry_number), 1) from state.{TABLE} where acted_at < $1)""",
            [_oldest()],
        )
    log.info("audit log: entry %d, %s", number, digest)


def verified(store: Store, noted: tuple[int, str] | None = None) -> Chain:
    """Check the chain of entries; noted: number and digest of an entry as they once were."""
    rows = list(store.read(f"{OF_CHAIN} order by entry_number").iter_rows(named=True))
    head = (rows[-1]["entry_number"], rows[-1]["digest"]) if rows else None
    # the first one is checked against nothing where it is what `keep` leaves of older entries
    is_whole = not rows or rows[0]["acted_at"] >= _oldest()
    begin = [{"entry_number": 0, "digest": ""}] if is_whole else []
    pairs = itertools.pairwise([*begin, *rows])
    faults = [fault for before, row in pairs for fault in _faults(before, row)]
    if noted is not None:
        digests = {row["entry_number"]: row["digest"] for row in rows}
        number, digest = noted
        oldest = min(digests, default=None)
        if oldest is not None and number < oldest:
            faults.append(f"entry {number} is not kept any more, and cannot be checked")
        elif number not in digests:
            faults.append(f"entry {number} was removed")
        elif digests[number] != digest:
            faults.append(f"entry {number}, or one before it, is another than it was")
    return Chain(len(rows), head, faults)


def _oldest() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None) - timedelta(days=KEPT_DAYS)


def _faults(before: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    number, gap = row["entry_number"], row["entry_number"] - before["entry_number"]
    if gap != 1:
        return [f"the entries before entry {number} were removed, {gap - 1} of them"]
    if _digest(number, row, before["digest"]) != row["digest"]:
        return [f"entry {number} was changed"]
    return []


def _digest(number: int, row: Mapping[str, Any], before: str) -> str:
    said = [row.get(name) for name in ("who", "action", "subject", "from_address")]
    text = json.dumps([before, number, row["acted_at"].isoformat(), *said])
    return hashlib.sha256(text.encode()).hexdigest()


def entries(store: Store, limit: int | None = None) -> pl.DataFrame:
    """Return the log, the latest entry first; limit: at most so many, None: all."""
    sql = f"select {COLUMNS} from state.{TABLE} order by acted_at desc, entry_id"
    return store.read(sql + (f" limit {int(limit)}" if limit else ""))

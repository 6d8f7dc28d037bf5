"""Status of each live source, which the poll loop writes to `state.source_status`.

A status is no evidence of a cluster and has no row in `state.ingested`: a source that is polled
every ten seconds must not invalidate every build, page and list of sources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Self

import polars as pl

from goodput_ingest.formats.parsed import INSTANT
from goodput_queries.catalog import models
from goodput_queries.database import LocalStore, Store
from goodput_queries.evidence import load
from goodput_queries.evidence.batch import Batch

TABLE = "source_status"
ERROR_MAX_CHARS = 500
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "source": pl.String,
    "origin": pl.String,
    "asked_at": INSTANT,
    "answered_at": INSTANT,
    "failing_since_at": INSTANT,
    "failures": pl.Int32,
    "error": pl.String,
    "interval_s": pl.Float64,
    "retired_at": INSTANT,
}


@dataclass(frozen=True)
class Status:
    """A row of `state.source_status`; moments are naive UTC.

    asked_at: when the last poll began. answered_at: when the last one began that read all there
    was: a source without times in its rows goes on from there.
    """

    source: str
    origin: str
    asked_at: datetime
    interval_s: float
    answered_at: datetime | None = None
    failing_since_at: datetime | None = None
    failures: int = 0
    error: str | None = None
    retired_at: datetime | None = (
        None  # the source was removed: it raises no alert; the next poll resets it
    )

    def answered(self, at: datetime, skipped: str | None = None) -> Self:
        """Return the status after a poll that began at `at` and read all there was.

        skipped: what was left out of it for good, a sentence
        """
        error = None if skipped is None else skipped[:ERROR_MAX_CHARS]
        return replace(
            self, asked_at=at, answered_at=at, failing_since_at=None, failures=0, error=error
        )

    def failed(self, at: datetime, sentence: str) -> Self:
        """Return the status after a poll that began at `at` and failed."""
        return replace(
            self,
            asked_at=at,
            failing_since_at=self.failing_since_at or at,
            failures=self.failures + 1,
            error=sentence[:ERROR_MAX_CHARS],
        )


def read(store: Store, status: Status) -> Status:
    """Return the status that an earlier process stored, else `status` itself."""
    known = store.read(
        f"select answered_at, failing_since_at, failures, error from state.{TABLE} "
        "where source = $1 and origin = $2",
        [status.source, status.origin],
    ).to_dicts()
    return replace(status, **known[0]) if known else status


def watched(store: Store) -> list[Status]:
    """Return the sources whose status is reported, whichever process polls them."""
    columns = ", ".join(SCHEMA)
    known = store.read(
        f"select {columns} from state.{TABLE} where retired_at is null order by source, origin"
    )
    return [Status(**row) for row in known.to_dicts()]


def retire(store: Store, statuses: Sequence[Status]) -> pl.DataFrame:
    """Stop reporting these sources until they are polled again; return them."""
    now = datetime.now(UTC).replace(tzinfo=None)
    write(store, [replace(one, retired_at=now) for one in statuses])
    return pl.DataFrame(
        [
            {
                "source": s.source,
                "origin": s.origin,
                "answered_at": s.answered_at,
                "retired_at": now,
            }
            for s in statuses
        ],
        schema_overrides={"answered_at": INSTANT},
    )


def write(store: Store, statuses: Sequence[Status]) -> None:
    """Upsert statuses; raises StoreError where that fails."""
    rows = pl.DataFrame([asdict(one) for one in statuses], schema=SCHEMA)
    keep(store, Batch(TABLE, rows, "collect", "goodput collect", "status"))


def keep(store: Store, batch: Batch) -> None:
    """Write a batch of statuses, or send it to the process that has the database open."""
    if not isinstance(store, LocalStore):
        store.load(batch)
        return
    with store.writing(is_shown=False) as cursor:
        load.insert_keyed(cursor, models.of_layer("state")[TABLE], batch.rows, sequence=0)


def reached(store: Store, source: str, now: datetime) -> Mapping[str, datetime]:
    """Return the watermark of a source: the latest time in the store, by origin.

    That is the latest moment of the rows that were loaded or, where later, the beginning of the
    last poll that read all there was. A moment of a clock that ran ahead does not count as one.
    """
    known = store.read(
        f"""select origin, max(moment) as moment from (
            select origin, window_end_at as moment from state.ingested where source = $1
            union all
            select origin, answered_at from state.{TABLE} where source = $1 and answered_at <= $2
        ) where moment is not null group by origin""",
        [source, now],
    )
    return dict(known.iter_rows())

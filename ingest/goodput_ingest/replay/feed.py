"""A recording as a live source: each poll brings what became known since the last one."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

import polars as pl

from goodput_ingest.replay.clock import ReplayClock
from goodput_ingest.replay.recording import Recording
from goodput_ingest.source import Batch
from goodput_queries.database import LocalStore
from goodput_queries.evidence.emptying import empty
from goodput_queries.storage.row_groups import ROW_GROUP

INTERVAL_S = 2.0
PART = timedelta(hours=1)  # of a recording that is read at once
BATCH_ROWS = 8 * ROW_GROUP


@dataclass
class ReplayFeed:
    """What a recording says up to its clock, polled as any live source."""

    name: ClassVar[str] = "replay"

    recording: Recording
    clock: ReplayClock
    title: str
    interval_s: float = INTERVAL_S
    _until: datetime | None = field(default=None, init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    @property
    def origin(self) -> str:
        """Return the name of the recording, as the Data page shows it."""
        return self.title

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:
        """Yield what became known since the last poll, or since the clock was set back."""
        del reached, now  # the clock of the recording alone decides
        with self._lock:
            until = self.clock.now()
            while self._until is None or self._until < until:
                part_until = min(until, (self._until or self.clock.begins_at) + PART)
                for table, rows in self.recording.between(self._until, part_until):
                    yield from self._batches(table, rows, part_until)
                self._until = part_until

    def _batches(self, table: str, rows: pl.DataFrame, until: datetime) -> Iterator[Batch]:
        for (source,), of_source in rows.partition_by("source", as_dict=True).items():
            for number, part in enumerate(of_source.iter_slices(BATCH_ROWS)):
                digest = f"replay {table} {self._until} {until} {number}"
                yield Batch(table, part, str(source), self.title, digest)

    def probe(self) -> list[str]:
        """Return nothing: a recording is always there."""
        return []

    def seek(self, store: LocalStore, at: datetime) -> None:
        """Set the clock; back in time, the store forgets all that was not known then.

        The next poll loads again what was known at that moment.
        """
        with self._lock:
            at = self.clock.set(at)
            if self._until is not None and at < self._until:
                empty(store)
                self._until = None

    def step(self, store: LocalStore, by: timedelta) -> None:
        """Stand still, that much later or earlier."""
        self.clock.pause()
        self.seek(store, self.clock.now() + by)

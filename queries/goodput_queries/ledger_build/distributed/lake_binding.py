"""The lake that a database is of, and what its builds compute with; see decision 0145."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import duckdb
import polars as pl

from goodput_queries.lake.store import LakeStore
from goodput_queries.ledger_build.distributed import implausible_readings
from goodput_queries.ledger_build.distributed.detail import read_readings
from goodput_queries.ledger_build.distributed.engines import Engine, InProcess, OnTask
from goodput_queries.scope import EVERYTHING, Scope
from goodput_queries.storage.database_file import DatabaseFile

if TYPE_CHECKING:
    from goodput_queries.lake.lake import Lake


PUBLISH_EVERY_S: Final = 600.0  # a day is compared with what the lake has, and written as a whole


@dataclass(frozen=True)
class LakeOptions:
    """How a database uses its lake.

    new_engine: makes what builds compute with; None: this process.
    recent_days: of which the database has readings itself.
    cluster: of rows that it loads and that name none; '' is unknown.
    publishes: `publish`, which servers and `goodput build` call after builds, does so.
    """

    new_engine: Callable[[], Engine] | None = None
    recent_days: int = 0
    cluster: str = ""
    publishes: bool = False


class LakeBinding:
    """What a database has of a lake: nothing where it is of none. Both are found when asked for."""

    def __init__(self, store: DatabaseFile, options: LakeOptions) -> None:
        """Take the database."""
        self._store = store
        self.options = options
        self.recent_days = options.recent_days
        self._lake: LakeStore | None = None
        self._engine: Engine | None = None
        self.new_engine = options.new_engine or InProcess
        self._publishing = threading.Lock()
        self._publish_from_s = 0.0  # by the steady clock
        self.on_task: OnTask = lambda _table, _done, _all: None  # of builds

    @property
    def store(self) -> LakeStore | None:
        """Return the store of the lake; raises StoreError where it cannot be opened."""
        if self._lake is None:
            with self._store.cursor() as cursor:
                found = cursor.execute("select url from state.lake_versions limit 1").fetchall()
            if found:
                from goodput_queries.lake.lake import Lake  # noqa: PLC0415 -- an extra
                from goodput_queries.lake.store import LakeStore  # noqa: PLC0415 -- as above

                self._lake = LakeStore(Lake.open(found[0][0], cluster=self.options.cluster))
        return self._lake

    @property
    def lake(self) -> Lake | None:
        """Return the lake; raises StoreError where it cannot be opened."""
        return None if self.store is None else self.store.lake

    @property
    def engine(self) -> Engine:
        """Return what computes the readings of the lake."""
        if self._engine is None:
            self._engine = self.new_engine()
        return self._engine

    def pull(self) -> None:
        """Take over what was committed to the lake since the last time."""
        if self.lake is not None:
            from goodput_queries.lake.pull import pull  # noqa: PLC0415 -- an extra

            pull(self._store, self.lake, self.recent_days)

    def publish(self) -> None:
        """Write closed hours that builds changed to the lake, where the options say so.

        Raises StoreError where that fails; it is tried again after some minutes.
        """
        if not self.options.publishes or self.lake is None:
            return
        from goodput_queries.lake.publish import publish_noted  # noqa: PLC0415 -- an extra

        with self._publishing:
            if time.monotonic() < self._publish_from_s:
                return
            self._publish_from_s = time.monotonic() + PUBLISH_EVERY_S
            publish_noted(self._store, self.lake)

    def reject_implausible_readings(
        self, cursor: duckdb.DuckDBPyConnection, since: int | None
    ) -> bool:
        """Reject readings of loads after `since`; return whether builds have used any of them."""
        if self.lake is None:
            return False
        return implausible_readings.reject_implausible_readings(cursor, self.lake, since)

    def is_older(self, from_ms: int) -> bool:
        """Say whether readings of a time that begins then are in the lake alone."""
        if self.lake is None:
            return False
        with self._store.cursor() as cursor:
            found = cursor.execute("select max(from_ms) from state.lake_readings").fetchall()
        return found[0][0] is None or from_ms < int(found[0][0])

    def read(
        self,
        sql: str,
        parameters: Sequence[Any],
        bounds_ms: tuple[int, int],
        keys: Sequence[str] | None,
        scope: Scope = EVERYTHING,
    ) -> pl.DataFrame:
        """Return the rows of a select over readings of a time, from the lake.

        keys: the GPUs or nodes whose readings it needs; None: all. Raises StoreError where the lake
        does not answer.
        """
        assert self.lake is not None  # noqa: S101 -- `is_older` was asked
        with self._store.cursor() as cursor:
            return read_readings(
                cursor, self.lake, sql, parameters, bounds_ms, keys, scope.variables()
            )

    def close(self) -> None:
        """Give up what the engine holds."""
        if self._engine is not None:
            self._engine.close()

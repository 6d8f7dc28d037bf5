"""A lake as ingest and collect see a database: it takes batches and knows the watermarks.

with closing(LakeStore(Lake.open("s3://metrics/goodput", cluster="west"))) as store:
    store.load(batch)
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import duckdb
import polars as pl

from goodput_lake.tables import statuses
from goodput_lake.tables.arrange import BUCKETED, lake_table, window
from goodput_lake.tables.lake import Lake
from goodput_queries.catalog import models
from goodput_queries.errors import QueryError, StoreError
from goodput_queries.evidence.batch import Batch, Loaded
from goodput_queries.scope import EVERYTHING, Scope

log = logging.getLogger(__name__)

STATE: Final = ("ingested", "source_status", "kept_from")  # what loading reads
REACHED: Final = """insert into state.ingested
    (sequence, source, origin, digest, table_name, window_end_at, rows, rows_new, rejects,
        loaded_at)
    values (0, $source, $origin, '', $table, $end, 0, 0, 0, get_current_timestamp()::timestamp)"""


class LakeStore:
    """The `Store` of a lake: rows are appended, selects see the state of loading only.

    `state.ingested` has a row for each source, origin and table of the lake's cluster: the latest
    time. What other processes load after the first select is not in it.
    """

    def __init__(self, lake: Lake) -> None:
        """Take a lake that is open; nothing is read yet."""
        self.lake = lake
        self.path = lake.url
        self._lock = threading.Lock()
        self._state: duckdb.DuckDBPyConnection | None = None
        self._is_warned = False

    def load(self, batch: Batch, *, is_polled: bool = False) -> Loaded:
        """Commit a batch; see `Lake.append`. Of a status the file is replaced."""
        del is_polled  # nothing is kept of answers here
        if batch.table == statuses.TABLE:
            statuses.write(self.lake, batch.rows)
            return Loaded(batch.rows.height, batch.rows.height, 0, is_repeat=False)
        self._warn_without_cluster(batch)
        loaded = self.lake.append(batch)
        _, end = window(lake_table(batch.table), batch.rows)
        with self._lock:
            if self._state is not None and end is not None:
                _note_reached(self._state, batch.source, batch.origin, batch.table, end)
        return loaded

    def _warn_without_cluster(self, batch: Batch) -> None:
        """Log once that rows go into the lake of which nothing says the cluster."""
        if self.lake.cluster or self._is_warned or batch.rows.is_empty():
            return
        is_of_one = batch.table in BUCKETED or "cluster" in lake_table(batch.table).columns
        is_named = "cluster" in batch.rows.columns and not batch.rows["cluster"].has_nulls()
        if is_of_one and not is_named:
            self._is_warned = True
            log.warning(
                "%s: rows of %s name no cluster, and none is configured: add `cluster` under "
                "[lake] in goodput.toml.",
                self.path,
                batch.origin,
            )

    def read(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        scope: Scope = EVERYTHING,
        timeout_s: float | None = None,
        is_kept: bool = False,
    ) -> pl.DataFrame:
        """Return the rows of a select on the state of loading; another raises QueryError."""
        del scope, timeout_s, is_kept  # these selects are of a few rows
        with self._lock:
            if self._state is None:
                self._state = _state_of(self.lake)
            try:
                found: pl.DataFrame = self._state.sql(sql, params=parameters).pl()
            except duckdb.Error as error:
                raise QueryError(
                    f"{self.path}: a lake answers no queries; build a database from it: {error}"
                ) from error
        return found

    def build(self, *, is_full: bool = False) -> pl.DataFrame:
        """Raise StoreError: a ledger is built in a database."""
        del is_full
        raise StoreError(f"{self.path}: a lake has no ledger; build a database from it.")

    def close(self) -> None:
        """Forget what was read; a lake has nothing to close."""
        with self._lock:
            if self._state is not None:
                self._state.close()
                self._state = None


def _state_of(lake: Lake) -> duckdb.DuckDBPyConnection:
    """Return tables of the state of loading, in memory."""
    state = duckdb.connect()
    state.execute("create schema state")
    for name in STATE:
        state.execute(models.of_layer("state")[name].sql)
    state.register("known", statuses.read(lake).to_arrow())
    state.execute(
        f"insert into state.{statuses.TABLE} by name select * exclude ({statuses.CLUSTER}) "
        f"from known where {statuses.CLUSTER} = $1",
        [lake.cluster],
    )
    state.unregister("known")
    for table in lake.tables():
        latest: dict[tuple[str, str], Any] = {}
        for one in lake.commits(table):
            if one.cluster == lake.cluster and one.window_end_at is not None:
                key = (one.source, one.origin)
                latest[key] = max(one.window_end_at, latest.get(key, one.window_end_at))
        for (source, origin), end in latest.items():
            _note_reached(state, source, origin, table, end)
    return state


def _note_reached(
    state: duckdb.DuckDBPyConnection, source: str, origin: str, table: str, end: Any
) -> None:
    """Note the latest time of an origin in one table, where it is later than the one known."""
    key = {"source": source, "origin": origin, "table": table}
    condition = "(source, origin, table_name) = ($source, $origin, $table)"
    before = state.execute(
        f"delete from state.ingested where {condition} returning window_end_at", key
    ).fetchall()
    state.execute(REACHED, {**key, "end": max([end, *(row[0] for row in before)])})

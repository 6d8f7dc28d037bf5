"""The lake that a database is of, and what its builds compute with; see decision 0145."""

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import duckdb
import polars as pl

from goodput_lake.publish import publish_noted
from goodput_lake.pull import attach, pull
from goodput_lake.store import LakeStore
from goodput_lake.tables.arrange import bucket_of
from goodput_lake.tables.lake import Lake
from goodput_lake.tables.loads import EPOCH
from goodput_lake.tasks import implausible_readings
from goodput_lake.tasks.database import PartDatabase
from goodput_lake.tasks.distribute import Parts, lake_part, loads_of, snapshot
from goodput_lake.tasks.engines import Engine, InProcess
from goodput_lake.tasks.task import Task, needs_of
from goodput_queries.errors import QueryError
from goodput_queries.evidence.batch import Batch, Loaded
from goodput_queries.ledger_build.dirty import DirtySet
from goodput_queries.ledger_build.dirty_hours import HOUR_MS
from goodput_queries.ledger_build.lake import LakeOptions, OnTask
from goodput_queries.scope import EVERYTHING, Scope
from goodput_queries.storage.database_file import DatabaseFile

__all__ = ["AttachedLake", "attach", "lake_of", "store"]

PUBLISH_EVERY_S: Final = 600.0  # a day is compared with what the lake has, and written as a whole
STAGES: Final = {  # by table in the lake: what its rows are made of
    "ledger_hourly": ("marts.ledger_hourly_by_node",),
    "gpu_metrics": ("intermediate.int_gpu_metrics", "intermediate.int_gpu_inventory"),
}


class AttachedLake:
    """The lake of one database; see `goodput_queries.ledger_build.lake.Lake`."""

    def __init__(self, file: DatabaseFile, url: str, options: LakeOptions) -> None:
        """Open the lake; raises StoreError where that fails."""
        self.options = options
        self.lake = Lake.open(url, cluster=options.cluster)
        self.on_task: OnTask = lambda _table, _done, _all: None
        self._file = file
        self._store = LakeStore(self.lake)
        self._engine: Engine | None = None
        self._publishing = threading.Lock()
        self._publish_from_s = 0.0  # by the steady clock

    @property
    def engine(self) -> Engine:
        """Return what computes the readings; raises StoreError where Ray is not reached."""
        if self._engine is None:
            self._engine = _engine_of(self.options)
        return self._engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._engine = engine

    def load(self, batch: Batch) -> Loaded:
        """Commit a batch to the lake."""
        return self._store.load(batch)

    def pull(self) -> None:
        """Take over what was committed to the lake since the last time."""
        pull(self._file, self.lake, self.options.recent_days)

    def publish(self) -> None:
        """Write closed hours that builds changed to the lake, where the options say so.

        Raises StoreError where that fails; it is tried again after some minutes.
        """
        if not self.options.publishes:
            return
        with self._publishing:
            if time.monotonic() < self._publish_from_s:
                return
            self._publish_from_s = time.monotonic() + PUBLISH_EVERY_S
            publish_noted(self._file, self.lake)

    def tasks(self, cursor: duckdb.DuckDBPyConnection) -> Parts:
        """Return the tasks of a build, with the loads that the database knows."""
        return Parts(cursor, self.lake, self.engine, self.on_task)

    def note_changed_days(
        self, cursor: duckdb.DuckDBPyConnection, dirty: DirtySet, sequence: int
    ) -> None:
        """Note the days of dirty hours of what STAGES names, in the transaction of the build."""
        for table, stages in STAGES.items():
            differing = dirty.differing(stages)
            hours = dirty.every if differing.is_every else differing.hours
            cursor.execute(
                """create or replace temp table changed_days as
                select cluster, day
                from (select date '1970-01-01' + unnest($1::integer[]) as day)
                inner join intermediate.int_clusters
                    on day between from_ms(first_ms)::date and from_ms(as_of_ms)::date""",
                [sorted({hour // 24 for hour in hours})],
            )
            cursor.execute(
                """delete from state.unpublished_days
                where table_name = $1
                    and (cluster, day) in (select (cluster, day) from temp.changed_days)""",
                [table],
            )
            cursor.execute(
                "insert into state.unpublished_days "
                "select $1, cluster, day, $2 from temp.changed_days",
                [table, sequence],
            )

    def reject_implausible_readings(
        self, cursor: duckdb.DuckDBPyConnection, since: int | None
    ) -> bool:
        """Reject readings of loads after `since`; return whether builds have used any of them."""
        return implausible_readings.reject_implausible_readings(cursor, self.lake, since)

    def is_older(self, from_ms: int) -> bool:
        """Say whether readings of a time that begins then are in the lake alone."""
        with self._file.cursor() as cursor:
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

        What it reads besides comes from the database. Raises QueryError where the select is
        refused, StoreError where the lake does not answer.
        """
        start, end = (EPOCH + timedelta(milliseconds=ms) for ms in bounds_ms)
        buckets = set(range(self.lake.buckets))
        if keys is not None:
            buckets = {bucket_of(key, self.lake.buckets) for key in keys}
        selects = {"main.detail": sql}
        needs = needs_of(tuple(selects), tuple(selects.values()))
        tables = [name.split(".")[1] for name in needs.readings]
        with self._file.cursor() as cursor:
            task = Task(
                selects=selects,
                first=bounds_ms[0] // HOUR_MS,
                last=bounds_ms[1] // HOUR_MS + 1,
                variables=scope.variables(),
                inputs={name: cursor.sql(f"from {name}").to_arrow_table() for name in needs.inputs},
                readings=tuple(
                    lake_part(
                        table, snapshot(self.lake, table), (start, end), tuple(sorted(buckets))
                    )
                    for table in tables
                    if self.lake.version(table) is not None
                ),
                loads=loads_of(cursor),
                lake_url=self.lake.url,
                lake_options=self.lake.storage_options,
            )
        database = PartDatabase()
        try:
            found: pl.DataFrame = database.read(task, parameters)
        except duckdb.Error as error:
            raise QueryError(f"the lake refused the query: {error}") from error
        finally:
            database.close()
        return found

    def close(self) -> None:
        """Give up what the engine holds."""
        if self._engine is not None:
            self._engine.close()


def _engine_of(options: LakeOptions) -> Engine:
    if options.engine == "local":
        return InProcess(options.workers)
    from goodput_lake.tasks.ray_engine import RayEngine  # noqa: PLC0415 -- an extra

    return RayEngine(options.address, workers=options.workers)


def lake_of(file: DatabaseFile, url: str, options: LakeOptions) -> AttachedLake:
    """Open the lake that a database is of."""
    return AttachedLake(file, url, options)


def store(url: str, cluster: str) -> LakeStore:
    """Return a lake as what ingest and collect load into."""
    return LakeStore(Lake.open(url, cluster=cluster))

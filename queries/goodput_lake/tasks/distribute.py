"""Computes stages of a build part by part: those of readings that a lake has, and on workers more.

A database of a lake has everything but the readings. What is computed from readings comes back from
tasks, and what it is stored in is replaced as in every build, inside the build's transaction: a
build that is stopped anywhere leaves the database as it was.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa

from goodput_lake.tables.arrange import bucket_of, lake_table
from goodput_lake.tables.file_list import FileList
from goodput_lake.tables.lake import Lake
from goodput_lake.tables.selection import Selection
from goodput_lake.tasks.database import Tables
from goodput_lake.tasks.engines import Engine, followed, ignore
from goodput_lake.tasks.plan import Part, parts_of
from goodput_lake.tasks.task import LakePart, Task, needs_of
from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.ledger_build import materialise
from goodput_queries.ledger_build.dirty_hours import HOUR_MS, DirtyHours, Hours, ranges
from goodput_queries.ledger_build.lake import READINGS, OnTask
from goodput_queries.ledger_build.watermarks import NEW_READING_SERIES, reading_margin_ms

OF_HOSTS: Final = {"raw.node_samples", "raw.link_samples"}
NEW_SERIES: Final = "temp.new_reading_series"
TABLES: Final = tuple(name.split(".")[1] for name in READINGS)
HOURS_MAX: Final = 24 * 7  # of a task that streams
VARIABLES: Final = ("reading_margin_ms", "built_sequence", "merged_sequence")
MARGIN_MS: Final = 2 * HOUR_MS  # no stage looks farther beyond its hours
FOREVER_MS: Final = 9_223_372_036_854_775_807


def reads_readings(model: Model) -> bool:
    """Say whether a stored stage is made of readings, directly or through views."""
    return bool(models.evidence(model.qualified_name)[0] & set(READINGS))


class Parts:
    """The tasks of one build."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        lake: Lake,
        engine: Engine,
        on_task: OnTask = ignore,
    ) -> None:
        """Take the loads that the database has of a lake; what was committed later is not read."""
        self.cursor = cursor
        self.on_task = on_task
        self.lake = lake
        self.engine = engine
        # as they are now: of loads that the database does not know no row is read
        self.files = {table: snapshot(lake, table) for table in TABLES}
        self.loads = loads_of(cursor)
        self._with_readings = set(self.loads["table_name"].to_pylist())
        self.gpus: dict[int, int] = {}

    def has_readings(self, table: str) -> bool:
        """Say whether the lake has readings of a table."""
        return table in READINGS and table.split(".")[1] in self._with_readings

    def computes(self, model: Model) -> bool:
        """Say whether a stage is computed by tasks."""
        return reads_readings(model)

    def group_of(self, model: Model) -> list[Model]:
        """Return the stages that are computed in the same tasks, itself too: of GPUs, of hosts."""
        if model not in models.of_readings():
            return [model]
        is_of_hosts = _is_of_hosts(model)
        return [
            other
            for other in models.of_readings()
            if reads_readings(other) and _is_of_hosts(other) == is_of_hosts
        ]

    def new_series(self, hours: Hours) -> str:
        """Compute the series of readings of new loads in these hours; return their select."""
        self.cursor.execute(
            """create or replace temp table new_reading_series (source varchar, gpu_uuid varchar,
                gpu_instance varchar, first_ms bigint, last_ms bigint)"""
        )
        for tables in self._streamed({NEW_SERIES: NEW_READING_SERIES}, hours):
            self._insert(NEW_SERIES, tables[NEW_SERIES])
        return f"from {NEW_SERIES}"

    def note_buckets(self) -> None:
        """Count the GPUs of each bucket; the series of readings are known."""
        gpus = self.cursor.sql("select distinct gpu_uuid from state.reading_series").pl()
        buckets = [bucket_of(gpu, self.lake.buckets) for gpu in gpus["gpu_uuid"]]
        given = gpus.with_columns(bucket=pl.Series(buckets, dtype=pl.Int32))
        self._temporary("part_gpus", given.to_arrow())
        counts = dict(given.group_by("bucket").len().iter_rows())
        # one more: a bucket of nodes alone has work too
        self.gpus = {one: 1 + counts.get(one, 0) for one in range(self.lake.buckets)}

    def replace_hours(self, stages: Sequence[Model], dirty: DirtyHours) -> tuple[DirtyHours, int]:
        """Replace hourly stages in these hours; return where they may differ, and their rows."""
        if stages[0] not in models.of_readings():
            return self._replace_from_pass_tables(stages[0], dirty)
        for stage in stages:
            self._delete(stage, dirty.hours)
        rows = 0
        for tables in self._computed({s.qualified_name: s.sql for s in stages}, dirty.hours):
            rows += sum(self._insert(name, table) for name, table in tables.items())
        return dirty, rows

    def draft(self, model: Model, hours: Hours) -> None:
        """Draft a merged stage from the readings of new loads, which lie in these hours."""
        name = f"{models.TEMP_LAYER}.{model.name}"
        self.cursor.execute(
            f"create or replace temp table {model.name} as from {model.qualified_name} limit 0"
        )
        for tables in self._streamed({name: model.sql}, hours):
            self._insert(name, tables[name])

    def _replace_from_pass_tables(self, stage: Model, dirty: DirtyHours) -> tuple[DirtyHours, int]:
        """Replace a stage here, with those temporary tables of its passes that read readings."""
        given = {}
        for table in models.pass_tables(stage):
            if not reads_readings(table):
                continue
            parts = f"{table.name}_of_parts"
            computed = self._computed({table.qualified_name: table.sql}, dirty.hours)
            for number, tables in enumerate(computed):
                write = self._insert if number else self._temporary
                write(parts, tables[table.qualified_name])
            given[table.name] = f"from {parts} where {materialise.OF_THESE_HOURS}"
        return materialise.replace_hours(
            self.cursor, [stage], dirty, is_compared=False, given=given
        )

    def _computed(self, selects: Mapping[str, str], hours: Hours) -> Iterator[Tables]:
        """Yield tables of all GPUs and these hours, part by part."""
        parts = parts_of(
            hours,
            self.gpus,
            most_gpu_hours=materialise.PASS_MAX_GPU_HOURS,
            workers=self.engine.workers,
        )
        margin = timedelta(milliseconds=reading_margin_ms(self.cursor), seconds=1)
        tasks = (self._task(selects, part, margin) for part in parts)
        yield from self._followed(selects, tasks, len(parts))

    def _streamed(self, selects: Mapping[str, str], hours: Hours) -> Iterator[Tables]:
        """Yield tables of one select over readings as they are stored."""
        even = dict.fromkeys(range(self.lake.buckets), 1)
        parts = parts_of(
            hours, even, most_gpu_hours=len(even) * HOURS_MAX, workers=self.engine.workers
        )
        tasks = (self._task(selects, part, timedelta(), is_streamed=True) for part in parts)
        yield from self._followed(selects, tasks, len(parts))

    def _followed(
        self, selects: Mapping[str, str], tasks: Iterator[Task], count: int
    ) -> Iterator[Tables]:
        name = next(iter(selects))
        return followed(self.engine.compute(tasks), name, count, self.on_task)

    def _task(
        self,
        selects: Mapping[str, str],
        part: Part,
        margin: timedelta,
        *,
        is_streamed: bool = False,
    ) -> Task:
        _, first, last = part
        needs = needs_of(tuple(selects), tuple(selects.values()))
        return Task(
            selects=selects,
            first=first,
            last=last,
            is_streamed=is_streamed,
            variables=variables(self.cursor),
            inputs={
                name: self.cursor.sql(
                    of_gpus(name, columns_of(self.cursor, name), part)
                ).to_arrow_table()
                for name in needs.inputs
            },
            readings=tuple(
                self._lake_part(name.split(".")[1], part, margin)
                for name in needs.readings
                if self.has_readings(name)
            ),
            loads=self.loads,
            lake_url=self.lake.url,
            lake_options=self.lake.storage_options,
        )

    def _lake_part(self, table: str, part: Part, margin: timedelta) -> LakePart:
        buckets, first, last = part
        start, end = _moment(first) - margin, _moment(last) + margin
        return lake_part(table, self.files[table], (start, end), buckets)

    def _delete(self, stage: Model, hours: Hours) -> None:
        for first, last in ranges(hours, len(hours)):
            self.cursor.execute(
                f"delete from {stage.qualified_name} where hour_ms >= $1 and hour_ms < $2",
                [first * HOUR_MS, last * HOUR_MS],
            )

    def _insert(self, name: str, rows: pa.Table) -> int:
        """Insert the rows of a part; return how many there are."""
        self.cursor.register("given", rows)
        self.cursor.execute(f"insert into {name} by name from given")
        self.cursor.unregister("given")
        return int(rows.num_rows)

    def _temporary(self, name: str, rows: pa.Table) -> None:
        self.cursor.register("given", rows)
        self.cursor.execute(f"create or replace temp table {name} as from given")
        self.cursor.unregister("given")


def snapshot(lake: Lake, table: str) -> FileList | int:
    """Return the files of a table as it is now; of an object store, or of no table, its version."""
    return lake.file_list(table) or lake.version(table) or 0


def lake_part(
    table: str, files: FileList | int, bounds: tuple[datetime, datetime], buckets: tuple[int, ...]
) -> LakePart:
    """Return the rows of a table of some buckets and a time."""
    if isinstance(files, int):
        return LakePart(table, files, *bounds, buckets, None)
    selection = Selection(lake_table(table), *bounds, buckets, None)
    return LakePart(table, files.version, *bounds, buckets, tuple(files.matching(selection)))


def loads_of(cursor: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return the loads of readings: table_name, load_digest, load_sequence, first_at, last_at."""
    return cursor.sql(
        f"""select table_name, digest as load_digest, min(sequence) as load_sequence,
            min(window_start_at) as first_at, max(window_end_at) as last_at
        from state.ingested where table_name in {TABLES} group by all"""
    ).to_arrow_table()


def _is_of_hosts(model: Model) -> bool:
    return bool(models.evidence(model.qualified_name)[0] & OF_HOSTS)


def _moment(hour: int) -> datetime:
    return datetime.fromtimestamp(hour * HOUR_MS / 1000, UTC).replace(tzinfo=None)


def columns_of(cursor: duckdb.DuckDBPyConnection, name: str) -> set[str]:
    """Return the columns of a table."""
    return {column for column, *_ in cursor.execute(f"describe {name}").fetchall()}


def variables(cursor: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return the constants of the build."""
    values = ", ".join(f"getvariable('{name}')" for name in VARIABLES)
    return dict(zip(VARIABLES, cursor.execute(f"select {values}").fetchall()[0], strict=True))


def of_gpus(name: str, columns: Collection[str], part: Part) -> str:
    """Return the select of the rows of a table that concern the GPUs and hours of a part."""
    listed = ", ".join(map(str, part[0]))
    buckets = f"select gpu_uuid from temp.part_gpus where bucket in ({listed})"
    conditions = _of_time(columns, part)
    if "gpu_uuid" in columns:
        conditions.append(f"gpu_uuid in ({buckets})")
    elif "series" in columns:
        series = f"select series from state.reading_series where gpu_uuid in ({buckets})"
        conditions.append(f"series in ({series})")
    return f"from {name}" + (f" where {' and '.join(conditions)}" if conditions else "")


def _of_time(columns: Collection[str], part: Part) -> list[str]:
    _, first, last = part
    from_ms, to_ms = first * HOUR_MS - MARGIN_MS, last * HOUR_MS + MARGIN_MS
    if "hour_ms" in columns:
        return [f"hour_ms >= {from_ms} and hour_ms < {to_ms}"]
    if "start_ms" in columns and "end_ms" in columns:
        return [f"start_ms < {to_ms} and coalesce(end_ms, {FOREVER_MS}) > {from_ms}"]
    return []

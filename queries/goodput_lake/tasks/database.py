"""The database of a task: in memory, with the project's SQL as it stands."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from goodput_lake.tables.arrange import DIGEST
from goodput_lake.tasks.task import LakePart, Needs, Task, needs_of
from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.errors import BuildError
from goodput_queries.evidence.load import SEQUENCE
from goodput_queries.ledger_build import materialise

_PLAIN = ("stg_gpu_samples", "stg_gpu_samples_other", "stg_node_samples")
_WORD = re.compile(r"\w+")
Tables = dict[str, "pa.Table"]


@cache
def _reference() -> Tables:
    """Return the rows of the reference tables: read once for many databases."""
    with duckdb.connect() as connection:
        selects = models.reference_tables().items()
        return {name: connection.sql(select).to_arrow_table() for name, select in selects}


class PartDatabase:
    """Computes tasks, one after the other; a process has as many as it computes at once."""

    def __init__(self, *, threads: int | None = None, memory: str | None = None) -> None:
        config: dict[str, Any] = {} if threads is None else {"threads": threads}
        self._connection = duckdb.connect(config=config)
        self._connection.execute("set global TimeZone = 'UTC'")
        if memory is not None:
            self._connection.execute("set memory_limit = $1", [memory])
        for layer in (*models.BASE_LAYERS, "reference", "staging", "intermediate", "marts"):
            self._connection.execute(f"create schema {layer}")
        for name, rows in _reference().items():
            self._connection.register("given", rows)
            self._connection.execute(f"create table reference.{name} as from given")
            self._connection.unregister("given")
        for text in models.macro_files():
            self._connection.execute(text)

    def compute(self, task: Task) -> Tables:
        """Return the tables of a task by name; raises BuildError naming the one that failed."""
        needs = needs_of(tuple(task.selects), tuple(task.selects.values()))
        with self._connection.cursor() as cursor:
            self._provide(cursor, task, needs)
            return self._computed(cursor, task, needs)

    def read(self, task: Task, parameters: Sequence[Any]) -> pl.DataFrame:
        """Return the rows of the one select of a task; raises duckdb.Error where it is refused."""
        needs = needs_of(tuple(task.selects), tuple(task.selects.values()))
        (select,) = task.selects.values()
        with self._connection.cursor() as cursor:
            self._provide(cursor, task, needs)
            _set_variables(cursor, task)
            found: pl.DataFrame = cursor.sql(select, params=list(parameters)).pl()
        return found

    def close(self) -> None:
        """Give back the memory."""
        self._connection.close()

    def _provide(self, cursor: duckdb.DuckDBPyConnection, task: Task, needs: Needs) -> None:
        for name in needs.inputs:
            cursor.register("given", task.inputs[name])
            cursor.execute(f"create or replace table {name} as from given")
            cursor.unregister("given")
        if task.readings:
            cursor.register("given", task.loads)
            cursor.execute("create or replace table main.loads as from given")
            cursor.unregister("given")
        words = _words(task, needs)
        of_lake = {part.table: part for part in task.readings}
        for name in needs.readings:
            table = models.base_tables()[name.split(".")[1]]
            _empty(cursor, table)
            part = of_lake.get(table.name)
            if part is not None and part.files != ():
                _provide_readings(cursor, task, part, table, words)
        for view in needs.views:
            cursor.execute(f"create or replace view {view.qualified_name} as {view.sql}")

    def _computed(self, cursor: duckdb.DuckDBPyConnection, task: Task, needs: Needs) -> Tables:
        _set_variables(cursor, task)
        materialise.set_hours(cursor, task.first, task.last)
        materialise.draft_pass(cursor, needs.pass_tables)
        found: Tables = {}
        for name, select in task.selects.items():
            kind, _, table = name.partition(".")
            is_temporary = kind == models.TEMP_LAYER
            made = f"temp table {table}" if is_temporary else f"table {name}"
            try:
                cursor.execute(f"create or replace {made} as {select}")
                found[name] = cursor.sql(f"from {name}").to_arrow_table()
            except duckdb.Error as error:
                raise BuildError(f"{name} cannot be built: {error}") from error
        return found


def _set_variables(cursor: duckdb.DuckDBPyConnection, task: Task) -> None:
    for name, value in task.variables.items():
        cursor.execute(f"set variable {name} = $1", [value])


def _provide_readings(
    cursor: duckdb.DuckDBPyConnection, task: Task, part: LakePart, table: Model, words: set[str]
) -> None:
    """Give a table of readings its rows: of one key the one that a database would keep.

    words: those of the selects; columns that none of them names stay null.
    """
    columns = _columns(cursor, table)
    wanted = [name for name in columns if name in words or name in table.grain]
    if part.files is None:
        cursor.register("of_lake", _rows_of_lake(task, part, [*wanted, DIGEST]))
        there, source = set(wanted), "of_lake"
    else:
        files = ", ".join(_quoted(path) for path in part.files)
        source = f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)"
        there = {name for name, *_ in cursor.execute(f"describe from {source}").fetchall()}
    values = ", ".join(
        f"readings.{name}::{kind} as {name}"
        if name in there and name in wanted
        else f"null::{kind} as {name}"
        for name, kind in columns.items()
        if name != SEQUENCE
    )
    time = f"readings.{table.time}"
    select = f"""select {values}, loads.{SEQUENCE}
        from {source} as readings inner join main.loads as loads using ({DIGEST})
        where loads.table_name = '{part.table}'
            and {time} >= loads.first_at and {time} <= loads.last_at
            and {time} >= timestamp '{part.start_at}' and {time} < timestamp '{part.end_at}'"""
    if task.is_streamed:
        cursor.execute(f"drop table {table.qualified_name}")
        cursor.execute(f"create view {table.qualified_name} as {select}")
    else:
        cursor.execute(f"insert into {table.qualified_name} {select}")
        _drop_repeats(cursor, table, list(columns))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _columns(cursor: duckdb.DuckDBPyConnection, table: Model) -> dict[str, str]:
    return dict(
        cursor.execute(
            f"select column_name, column_type from (describe {table.qualified_name})"
        ).fetchall()
    )


def _empty(cursor: duckdb.DuckDBPyConnection, table: Model) -> None:
    """Create a table of readings without rows, whatever the task before left there."""
    kinds = cursor.execute(
        """select table_type from information_schema.tables
        where table_schema = $1 and table_name = $2""",
        [table.layer, table.name],
    ).fetchall()
    for (kind,) in kinds:
        cursor.execute(f"drop {'view' if kind == 'VIEW' else 'table'} {table.qualified_name}")
    cursor.execute(table.sql)


def _rows_of_lake(task: Task, part: LakePart, columns: list[str]) -> pa.RecordBatchReader:
    """Return the rows from an object store, which DuckDB alone cannot read."""
    from goodput_lake.tables.lake import Lake  # noqa: PLC0415 -- the package is an extra

    lake = Lake.open(task.lake_url, storage_options=task.lake_options)
    return lake.rows(
        part.table,
        columns=columns,
        start_at=part.start_at,
        end_at=part.end_at,
        buckets=part.buckets,
        version=part.version,
    )


def _drop_repeats(cursor: duckdb.DuckDBPyConnection, table: Model, columns: list[str]) -> None:
    """Leave one row of each key: the first loaded one, as `evidence/load.py` does."""
    name, keys = table.qualified_name, ", ".join(table.grain)
    repeats = cursor.execute(f"select count(*) - count(distinct hash({keys})) from {name}")
    if not repeats.fetchall()[0][0]:
        return
    content = ", ".join(column for column in columns if column != SEQUENCE)
    cursor.execute(
        f"""create or replace temp table once as
        select unnest(first(each_row order by {SEQUENCE}, ({content}) desc))
        from {name} as each_row group by {keys}"""
    )
    cursor.execute(f"delete from {name}")
    cursor.execute(f"insert into {name} from temp.once order by {keys}")
    cursor.execute("drop table temp.once")


def _words(task: Task, needs: Needs) -> set[str]:
    """Return the words of the SQL of a task, without the views that name every column."""
    parts = [model.sql for model in needs.pass_tables] + list(task.selects.values())
    # a view of the rows as they are names every column; what reads it names those it needs
    parts += [view.sql for view in needs.views if view.name not in _PLAIN]
    return set(_WORD.findall("\n".join(parts)))

"""The one module that opens DuckDB: one process owns the file, each call takes a cursor of its own.

A second process finds the file locked; `open_store` then hands out a store that talks to the owner
over loopback HTTP (`remote.py`), with the same methods, or waits for a short-lived owner to finish.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import duckdb

from goodput_queries import catalog
from goodput_queries.batch import REJECT_CONTENT_MAX_CHARS, Batch, Loaded
from goodput_queries.errors import BuildError, QueryError, StoreError
from goodput_queries.scope import EVERYTHING, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

IN_MEMORY = ":memory:"
Parameters = "Sequence[Any] | Mapping[str, Any] | None"


class Store(Protocol):
    """The database as the rest of the product sees it, here or in the process that has it open."""

    def load(self, batch: Batch) -> Loaded:
        """Commit a batch: its rows, its rejects and the note that it was read, or none of them."""

    def read(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        scope: Scope = EVERYTHING,
        timeout_s: float | None = None,
    ) -> pl.DataFrame:
        """Return the rows of a select; marts see only `scope`. A bad select raises QueryError."""

    def build(self, *, is_full: bool = False) -> pl.DataFrame:
        """Bring the ledger up to date; return stage, rows and seconds of what was built."""

    def close(self) -> None:
        """Release the file or the connection."""


class LocalStore:
    """A DuckDB file (or memory) owned by this process; safe to use from several threads."""

    def __init__(self, path: str | Path = IN_MEMORY, *, threads: int | None = None) -> None:
        """Open or create the database; raises StoreError where it cannot be opened."""
        self.path = str(path)
        self._write_lock = threading.RLock()
        config: dict[str, str | bool | int | float | list[str]] = (
            {} if threads is None else {"threads": threads}
        )
        try:
            self._root = duckdb.connect(self.path, config=config)
        except duckdb.Error as error:
            raise StoreError(_why_not_opened(self.path, error)) from error
        try:
            self._root.execute("set global TimeZone = 'UTC'")
            self._prepare()
        except BaseException as error:
            self._root.close()
            if isinstance(error, duckdb.Error):
                raise BuildError(f"{self.path}: its tables cannot be made: {error}") from error
            raise

    @contextlib.contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection of the caller's own: a shared one refuses a second thread."""
        try:
            cursor = self._root.cursor()
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: the database is closed. ({error})") from error
        try:
            yield cursor
        finally:
            cursor.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor inside one transaction; at most one writer at a time."""
        with self._write_lock, self.cursor() as cursor:
            cursor.execute("begin")
            try:
                yield cursor
            except BaseException:
                cursor.execute("rollback")
                raise
            cursor.execute("commit")

    def load(self, batch: Batch) -> Loaded:
        """Commit a batch in one short transaction; a part that was loaded before is skipped."""
        model = catalog.models("raw").get(batch.table)
        if model is None:
            raise StoreError(f"there is no raw table {batch.table!r}; see `goodput show`")
        try:
            return self._load(model, batch)
        except duckdb.Error as error:
            raise StoreError(
                f"{batch.origin}: its rows do not fit {model.qualified_name}: {error}"
            ) from error

    def _load(self, model: catalog.Model, batch: Batch) -> Loaded:
        with self.writing() as cursor:
            key = [batch.source, batch.digest, batch.table]
            if cursor.execute(
                "select 1 from raw.ingested where (source, digest, table_name) = ($1, $2, $3)", key
            ).fetchall():
                return Loaded(batch.rows.height, 0, len(batch.rejects), is_repeat=True)
            rows_new = _insert_keyed(cursor, model, batch.rows)
            _insert_rejects(cursor, batch)
            start, end = _window(model, batch.rows)
            cursor.execute(
                """insert into raw.ingested
                select coalesce(max(sequence), 0) + 1, $1, $2, $3, $4, $5, $6, $7, $8, $9,
                    get_current_timestamp()::timestamp
                from raw.ingested""",
                [
                    batch.source,
                    batch.origin,
                    batch.digest,
                    batch.table,
                    batch.rows.height,
                    rows_new,
                    len(batch.rejects),
                    start,
                    end,
                ],
            )
        return Loaded(batch.rows.height, rows_new, len(batch.rejects), is_repeat=False)

    def read(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        scope: Scope = EVERYTHING,
        timeout_s: float | None = None,
    ) -> pl.DataFrame:
        """Return the rows of a select as a frame; see `Store.read`."""
        with self.cursor() as cursor:
            set_scope(cursor, scope)
            timer = threading.Timer(timeout_s, cursor.interrupt) if timeout_s else None
            if timer:
                timer.start()
            try:
                _refuse_all_but_a_select(cursor.extract_statements(sql))
                cursor.execute("begin transaction read only")
                frame: pl.DataFrame = cursor.sql(sql, params=_named(parameters)).pl()
                return frame
            except duckdb.InterruptException as error:
                raise QueryError(
                    f"the query took longer than {timeout_s} s and was stopped"
                ) from error
            except duckdb.Error as error:
                raise QueryError(f"the database refused the query: {error}") from error
            finally:
                if timer:
                    timer.cancel()

    def build(self, *, is_full: bool = False) -> pl.DataFrame:
        """Bring the ledger up to date; see `goodput_queries.build`."""
        from goodput_queries.build import build  # noqa: PLC0415 -- build reads the store

        with self._write_lock:
            return build(self, is_full=is_full)

    def close(self) -> None:
        """Close the file."""
        self._root.close()

    def _prepare(self) -> None:
        """Create what is missing: raw tables, reference facts, macros; views follow at build."""
        digest = catalog_digest()
        with self.writing() as cursor:
            for layer in catalog.LAYERS:
                cursor.execute(f"create schema if not exists {layer}")
            cursor.execute("create table if not exists raw.catalog (digest varchar)")
            if cursor.execute("select digest from raw.catalog").fetchall() == [(digest,)]:
                return
            present = {
                name
                for (name,) in cursor.execute(
                    "select table_name from duckdb_tables() where schema_name = 'raw'"
                ).fetchall()
            }
            for model in catalog.models("raw").values():
                if model.name not in present:
                    cursor.execute(model.sql)
            for name, file in catalog.reference_files().items():
                cursor.execute(
                    f"create or replace table reference.{name} as "
                    "select * from read_csv($1, header = true, all_varchar = false)",
                    [file],
                )
            for text in catalog.macro_files():
                cursor.execute(text)
            _create_views(cursor)
            cursor.execute("drop table if exists intermediate.built")  # all is to be built anew
            cursor.execute("delete from raw.catalog")
            cursor.execute("insert into raw.catalog values ($1)", [digest])


def catalog_digest() -> str:
    """Return a digest of all SQL and CSV files: when it changes, the views are made anew."""
    text = hashlib.blake2b(digest_size=16)
    for layer in catalog.LAYERS:
        for model in catalog.models(layer).values():
            text.update(model.sql.encode())
    for macro in catalog.macro_files():
        text.update(macro.encode())
    for file in catalog.reference_files().values():
        text.update(Path(file).read_bytes())
    return text.hexdigest()


def set_scope(cursor: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    """Set the DuckDB variables that the marts read; a fresh cursor has none."""
    for name, value in scope.variables().items():
        if value is not None:
            cursor.execute(f"set variable {name} = $1", [value])


def open_store(path: str | Path, *, wait_s: float = 30.0) -> Store:
    """Return the database at `path`: opened here, or through the process that has it open.

    A short-lived owner (another ingest) is waited for up to `wait_s`; then StoreError says who.
    """
    from goodput_queries.remote import find_server  # noqa: PLC0415 -- remote implements Store

    deadline = time.monotonic() + wait_s
    while True:
        if (server := find_server(path)) is not None:
            return server
        try:
            return LocalStore(path)
        except StoreError as error:
            if "another process" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def _create_views(cursor: duckdb.DuckDBPyConnection) -> None:
    """Create every view and an empty table for every stored stage, in dependency order."""
    for model in catalog.build_order():
        try:
            _create(cursor, model)
        except duckdb.Error as error:
            raise BuildError(f"{model.qualified_name} cannot be created: {error}") from error


def _create(cursor: duckdb.DuckDBPyConnection, model: catalog.Model) -> None:
    name = model.qualified_name
    is_table = model.materialised is not None or "written_by" in model.directives
    if is_table:
        cursor.execute(f"drop table if exists {name}")
    if "written_by" in model.directives:
        cursor.execute(model.sql)
    elif is_table:
        cursor.execute(f"create table {name} as select * from ({model.sql}) limit 0")
    else:
        cursor.execute(f"create or replace view {name} as {model.sql}")
    _comment(cursor, f"{'table' if is_table else 'view'} {name}", model.description)
    for column, meaning in model.columns.items():
        with contextlib.suppress(duckdb.CatalogException, duckdb.BinderException):
            _comment(cursor, f"column {name}.{column}", meaning)


def _comment(cursor: duckdb.DuckDBPyConnection, target: str, text: str) -> None:
    quoted = text.replace("'", "''")
    cursor.execute(f"comment on {target} is '{quoted}'")


def _insert_keyed(
    cursor: duckdb.DuckDBPyConnection, model: catalog.Model, rows: pl.DataFrame
) -> int:
    """Insert rows whose key is new; where the table says what to `keep`, the better row stays."""
    if rows.is_empty():
        return 0
    table, keys = model.qualified_name, model.grain
    keep = model.directives.get("keep")
    cursor.register("incoming", rows.to_arrow())
    columns = [
        c for (c,) in cursor.execute(f"select column_name from (describe {table})").fetchall()
    ]
    given = set(rows.columns)
    if unknown := given - set(columns):
        raise StoreError(f"{table} has no column {min(unknown)!r}")
    exprs = ", ".join(f"{c}" if c in given else f"null as {c}" for c in columns)
    same_key = " and ".join(f"old.{k} is not distinct from new.{k}" for k in keys)
    by_key = ", ".join(keys)
    cursor.execute(f"create or replace temp table incoming_rows as select * from {table} limit 0")
    cursor.execute(f"insert into incoming_rows select {exprs} from incoming")
    time_column = model.directives.get("time")
    nearby = (
        f"where {time_column} between (select min({time_column}) from incoming_rows) "
        f"and (select max({time_column}) from incoming_rows)"
        if time_column
        else ""
    )
    before = _count(cursor, table)
    if keep is None or keep == "replace":
        if keep == "replace":
            cursor.execute(
                f"delete from {table} old where exists "
                f"(select 1 from incoming_rows new where {same_key})"
            )
        cursor.execute(
            f"""insert into {table}
            select new.* from (
                select * from incoming_rows qualify row_number() over (partition by {by_key}) = 1
            ) new
            anti join (select {by_key} from {table} {nearby}) old on {same_key}"""
        )
    else:
        better = ", ".join(f"{term.strip()} desc nulls last" for term in keep.split(","))
        cursor.execute(
            f"""create or replace temp table best_rows as
            with candidates as (
                select * from incoming_rows
                union all
                select old.* from {table} old semi join incoming_rows new on {same_key}
            )
            select * from candidates
            qualify row_number() over
                (partition by {by_key} order by {better}, candidates desc) = 1"""
        )
        cursor.execute(
            f"delete from {table} old where exists (select 1 from best_rows new where {same_key})"
        )
        cursor.execute(f"insert into {table} select * from best_rows")
        cursor.execute("drop table best_rows")
    cursor.execute("drop table incoming_rows")
    cursor.unregister("incoming")
    return _count(cursor, table) - before


def _insert_rejects(cursor: duckdb.DuckDBPyConnection, batch: Batch) -> None:
    import polars as pl  # noqa: PLC0415 -- only where there are rejects

    if not batch.rejects:
        return
    frame = pl.DataFrame(
        {
            "source": [batch.source] * len(batch.rejects),
            "origin": [batch.origin] * len(batch.rejects),
            "line": [r.line for r in batch.rejects],
            "reason": [r.reason for r in batch.rejects],
            "content": [r.content[:REJECT_CONTENT_MAX_CHARS] for r in batch.rejects],
        },
        schema_overrides={"line": pl.Int64},
    )
    _insert_keyed(cursor, catalog.models("raw")["rejects"], frame)


def _window(model: catalog.Model, rows: pl.DataFrame) -> tuple[Any, Any]:
    """Return the first and last moment that the rows speak of, or two nulls."""
    column = model.directives.get("time")
    if column is None or rows.is_empty():
        return None, None
    return rows[column].min(), rows[column].max()


def _count(cursor: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(cursor.execute(f"select count(*) from {table}").fetchall()[0][0])


def _named(parameters: Any) -> Any:
    return list(parameters) if isinstance(parameters, (list, tuple)) else parameters


def _refuse_all_but_a_select(statements: Sequence[duckdb.Statement]) -> None:
    """Raise QueryError for anything that is not one select (or its explanation)."""
    kinds = [s.type for s in statements]
    if kinds not in ([duckdb.StatementType.SELECT], [duckdb.StatementType.EXPLAIN]):
        raise QueryError("this reads the database: expected one select, and nothing else.")


def _why_not_opened(path: str, error: duckdb.Error) -> str:
    text = str(error)
    if "Could not set lock" in text:
        return f"{path}: another process has this database open. ({text.splitlines()[0]})"
    return f"{path}: this is not a database that can be opened here. ({text.splitlines()[0]})"

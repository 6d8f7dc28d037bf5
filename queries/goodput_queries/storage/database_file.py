"""The one module that opens DuckDB: one process owns the file, each call takes its own cursor."""

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import duckdb
import polars as pl

from goodput_queries.errors import BuildError, QueryError, StoreError
from goodput_queries.scope import EVERYTHING, Scope
from goodput_queries.storage import (
    damage,
    migrations,
    opening,
    row_access,
    schema,
    scope_variables,
    staged_views,
    template,
)
from goodput_queries.storage.migrations import Migration
from goodput_queries.storage.opening import ATTACHED_AS, IN_MEMORY
from goodput_queries.storage.private import keep_private
from goodput_queries.storage.view_cache import ViewCache

log = logging.getLogger(__name__)

NOT_WRITTEN = (duckdb.IOException, duckdb.FatalException)  # the disk is full, the file is gone ...
# what DuckDB says of a file whose log it could not merge into it, on a full disk; all that was
# committed is in the log
INVALIDATED, IS_DURABLE = "has been invalidated", "COMMIT succeeded and is durable"


class Reader(Protocol):
    """What answers a select: a database here, or the server that has it open."""

    def read(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        scope: Scope = EVERYTHING,
        timeout_s: float | None = None,
        is_kept: bool = False,
    ) -> pl.DataFrame:
        """Return the rows of a select; marts see only `scope`. A bad select raises QueryError.

        is_kept: what it evaluates first is kept for other reads until the next commit; for pages
            and statements, which read the same views many times (`view_cache.py`).
        """


class DatabaseFile:
    """A DuckDB file (or memory) owned by this process; safe to use from several threads."""

    def __init__(
        self,
        path: str | Path = IN_MEMORY,
        *,
        threads: int | None = None,
        memory_mib: int | None = None,
        variables: Mapping[str, object] | None = None,
        is_from_template: bool = True,
        is_read_only: bool = False,
    ) -> None:
        """Open or create the database; raises StoreError where it cannot be opened.

        threads, memory_mib: of DuckDB; unset: all cores, 80 % of the machine's memory.
        variables: of DuckDB, by name, that every cursor has.
        is_from_template: a new database is a copy of the template (`template.py`).
        is_read_only: leave the file as it is; StoreError where it is not what a build would leave.
        """
        self.path = str(path)
        self.variables = dict(variables or {})
        # why the last write failed, where the disk is to blame; a small one that succeeds, of a
        # source's state, says nothing of what is loaded
        self.write_error: str | None = None
        self._is_error_of_views = False
        # of this store, which alone has the file: answers are kept until it grows; odd while a
        # commit that they are to show is under way
        self.commits = 0
        self._is_behind = False  # something was written that kept answers are to show later
        self._view_cache: ViewCache | None = None
        self._kept_lock = threading.Lock()
        self._write_lock = threading.RLock()
        self._cursors: set[duckdb.DuckDBPyConnection] = set()
        opening.refuse_unless_duckdb(self.path)
        if self.path != IN_MEMORY:
            keep_private()
            if is_from_template:
                template.copy_to(Path(path), _create_empty)
        self.is_read_only = is_read_only or opening.is_for_reading_only(self.path)
        self._limits = {"threads": threads, "memory_mib": memory_mib}
        self._open_lock = threading.Lock()
        self._is_to_be_reopened = False
        self._open()
        try:
            damage.note_ignored_wal(self._root, self.path, ATTACHED_AS)
            missing = migrations.pending(self._root, self.path, migrations.migrations())
            if self.is_read_only:
                self.refuse_unless_built()
            elif missing:
                self._root.close()  # so that the file on disk is whole
                copy = migrations.copy_before(self.path, missing)
                self._open()
                self._prepare(missing, copy)
            else:
                self._prepare()
        except BaseException as error:
            self._root.close()
            if isinstance(error, duckdb.Error):
                self._raise_if_damaged(error)
                raise BuildError(f"{self.path}: its tables cannot be made: {error}") from error
            raise

    def _open(self) -> None:
        try:
            self._root = opening.connect(self.path, is_read_only=self.is_read_only, **self._limits)
        except duckdb.Error as error:
            raise StoreError(opening.why_not_opened(self.path, error)) from error
        self._root.execute("set global TimeZone = 'UTC'")
        # a build of five minutes of a big fleet writes 70 MB: not each need be merged at once
        self._root.execute("set global checkpoint_threshold = '256MB'")

    @contextlib.contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection of the caller's own: a shared one refuses a second thread."""
        try:
            cursor = self._usable_cursor()
            self._cursors.add(cursor)
            for name, value in self.variables.items():
                cursor.execute(f"set variable {name} = $1", [value])
        except duckdb.Error as error:
            self._raise_if_damaged(error)
            raise StoreError(f"{self.path}: the database is closed. ({error})") from error
        try:
            yield cursor
        finally:
            self._cursors.discard(cursor)
            cursor.close()

    def _usable_cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a cursor of the file, which is opened again where DuckDB has given it up."""
        root = self._root
        try:
            return _cursor_of(root, self.path)
        except duckdb.Error as error:
            if INVALIDATED not in str(error) and not self._is_to_be_reopened:
                raise
            with self._open_lock:
                if self._root is root:
                    log.error("%s: it is opened again: %s", self.path, str(error).splitlines()[0])
                    self._is_to_be_reopened = True  # until that has succeeded
                    opening.close(root, self._cursors)
                    self._view_cache = None
                    self._open()
                    self._is_to_be_reopened = False
        return _cursor_of(self._root, self.path)

    @contextlib.contextmanager
    def writing(
        self, *, changes_views: bool = True, is_shown: bool = True
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor inside one transaction; at most one writer at a time.

        changes_views: answers may be others afterwards; not where no view reads what is written.
        is_shown: kept answers end with it, else with the next that is, or `show_all`.
        Raises StoreError where the file cannot be written (a full disk), wherever that is found.
        """
        if self.is_read_only:
            raise StoreError(opening.read_only(self.path))
        with self._write_lock, self.cursor() as cursor:
            try:
                cursor.execute("begin")
                yield cursor
                self.commits += changes_views and is_shown
                try:
                    cursor.execute("commit")
                except duckdb.IOException as error:
                    if IS_DURABLE not in str(error):
                        raise
                finally:
                    self.commits += changes_views and is_shown
                if changes_views:
                    self._is_behind = not is_shown
                if changes_views or not self._is_error_of_views:
                    self.write_error = None
            except BaseException as error:
                with contextlib.suppress(duckdb.Error):  # after a full disk nothing answers
                    cursor.execute("rollback")
                cause = error.__cause__ if isinstance(error, BuildError) else error
                self._raise_if_damaged(cause)
                if isinstance(cause, NOT_WRITTEN) or "Could not write file" in str(cause):
                    first = str(cause).splitlines()[0]
                    self.write_error = f"{self.path}: the disk is full or not writable: {first}"
                    self._is_error_of_views = changes_views
                    raise StoreError(self.write_error) from error
                raise

    def show_all(self) -> None:
        """End kept answers, if anything was written since that they do not show."""
        with self._write_lock:
            if self._is_behind:
                self.commits += 2
                self._is_behind = False

    def read(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        scope: Scope = EVERYTHING,
        timeout_s: float | None = None,
        is_kept: bool = False,
    ) -> pl.DataFrame:
        """Return the rows of a select as a frame; see `Reader.read`."""
        with self.cursor() as cursor:
            variables = scope_variables.set_on(cursor, scope)
            is_late = threading.Event()
            timer = threading.Timer(timeout_s, self._end, (cursor, is_late)) if timeout_s else None
            if timer:
                timer.start()
            try:
                _refuse_all_but_a_select(cursor.extract_statements(sql))
                if scope.teams is not None:
                    row_access.refuse_others(cursor, sql)
                needed = staged_views.named_in(sql)
                if needed and is_kept and (commits := self._begin_at_commits(cursor)) is not None:
                    kept = self._kept()
                    with kept.evaluated(cursor, sql, needed, variables, commits, is_late) as tables:
                        return _rows(cursor, staged_views.reading(sql, tables), parameters)
                # temporary tables are written too
                cursor.execute("begin" if needed else "begin transaction read only")
                sql = staged_views.evaluate(cursor, sql, needed)
                return _rows(cursor, sql, parameters)
            except duckdb.InterruptException as error:
                why = f"took longer than {timeout_s} s and" if timeout_s else "of a closed database"
                raise QueryError(f"the query {why} was stopped") from error
            except duckdb.Error as error:
                self._raise_if_damaged(error)
                said = row_access.message(error) if scope.teams is not None else str(error)
                raise QueryError(f"the database refused the query: {said}") from error
            finally:
                if timer:
                    timer.cancel()

    def _end(self, cursor: duckdb.DuckDBPyConnection, is_late: threading.Event) -> None:
        """End a read that takes too long, also while it waits for another one's view."""
        is_late.set()
        cursor.interrupt()
        if self._view_cache is not None:
            self._view_cache.wake()

    def _begin_at_commits(self, cursor: duckdb.DuckDBPyConnection) -> int | None:
        """Begin a transaction; return the state that it sees, None while a commit is under way."""
        commits = self.commits
        cursor.execute("begin")
        cursor.execute("select 1 from state.built limit 0")  # the snapshot is taken here
        if commits % 2 == 0 and commits == self.commits:
            return commits
        cursor.execute("rollback")
        return None

    @property
    def evaluated_s(self) -> float:
        """How many seconds reads have taken to evaluate views that are kept."""
        return 0.0 if self._view_cache is None else self._view_cache.took_s

    def _kept(self) -> ViewCache:
        with self._kept_lock:
            if self._view_cache is None:
                self._view_cache = ViewCache(self._root)
            return self._view_cache

    @contextlib.contextmanager
    def unchanging(self) -> Iterator[None]:
        """Let nothing be written for the length of a block; reads go on."""
        with self._write_lock:
            yield

    def close(self) -> None:
        """Close the file; reads of other threads are interrupted."""
        self._is_to_be_reopened = False
        opening.close(self._root, self._cursors)

    def _raise_if_damaged(self, error: BaseException | None) -> None:
        """Raise StoreError where an error comes from a damaged file."""
        if isinstance(error, duckdb.Error) and (said := damage.sentence(self.path, error)):
            raise StoreError(said) from error

    def refuse_unless_built(self) -> None:
        """Raise StoreError where this file, only to be read, is not what a build would leave."""
        with self.cursor() as cursor:
            opening.refuse_unless_ours(cursor, self.path)
            try:
                found = cursor.execute(
                    """select (select digest from raw.catalog),
                        (select coalesce(max(sequence), 0) from state.ingested)
                            = (select max(sequence) from state.built)"""
                ).fetchall()
            except duckdb.Error as error:
                raise StoreError(opening.read_only(self.path)) from error
        if found != [(schema.catalog_digest(), True)]:
            raise StoreError(opening.read_only(self.path))

    def _prepare(self, missing: Sequence[Migration] = (), copy: Path | None = None) -> None:
        """Migrate an older file, create what is missing; views follow at build."""
        try:
            with self.writing() as cursor:
                opening.refuse_unless_ours(cursor, self.path)
                migrations.migrate(cursor, self.path, missing)
                schema.create_missing(cursor, self.path, migrations.migrations())
        except (duckdb.Error, StoreError) as error:
            if copy is None:
                raise
            raise StoreError(
                f"{self.path}: the migration to schema version {missing[-1].version} failed and "
                f"was undone; a copy from before it is {copy}. ({error})"
            ) from error
        if copy is not None:
            copy.unlink()


def _cursor_of(root: duckdb.DuckDBPyConnection, path: str) -> duckdb.DuckDBPyConnection:
    cursor = root.cursor()
    return cursor if path == IN_MEMORY else cursor.execute(f"use {ATTACHED_AS}")


def _create_empty(path: Path) -> None:
    DatabaseFile(path, is_from_template=False).close()


def _rows(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Any) -> pl.DataFrame:
    frame: pl.DataFrame = cursor.sql(sql, params=_named(parameters)).pl()
    return frame


def _named(parameters: Any) -> Any:
    return list(parameters) if isinstance(parameters, (list, tuple)) else parameters


def _refuse_all_but_a_select(statements: Sequence[duckdb.Statement]) -> None:
    """Raise QueryError for anything that is not one select (or its explanation)."""
    kinds = [s.type for s in statements]
    if kinds not in ([duckdb.StatementType.SELECT], [duckdb.StatementType.EXPLAIN]):
        raise QueryError("this reads the database: expected one select, and nothing else.")

"""A database as the rest of the product sees it: the file, what loads it, what builds its ledger.

A second process finds the file locked; `open_store` then returns a store that talks to the owner
over loopback HTTP (`remote.py`), with the same methods, or waits for a short-lived owner to finish.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import duckdb
import polars as pl

from goodput_queries import packages
from goodput_queries.catalog import models
from goodput_queries.errors import RowsRefusedError, StoreError
from goodput_queries.evidence import load as loading
from goodput_queries.evidence.batch import Batch, Loaded
from goodput_queries.ledger_build.build import SUMMARY_SCHEMA, build
from goodput_queries.ledger_build.lake import Lake, LakeOptions
from goodput_queries.objectives.goodput import Objective, as_variable
from goodput_queries.objectives.serving import ServingObjective
from goodput_queries.remote import RemoteStore, find_server
from goodput_queries.storage import backup
from goodput_queries.storage.database_file import DatabaseFile, Reader
from goodput_queries.storage.opening import IN_MEMORY

DEFAULTS = LakeOptions()


class Store(Reader, Protocol):
    """The database as the rest of the product sees it, here or in the process that has it open."""

    def load(self, batch: Batch, *, is_polled: bool = False) -> Loaded:
        """Commit a batch: its rows, its rejects and the note that it was read, or none of them.

        is_polled: a server builds soon; what it keeps of answers shows the rows then.
        """

    def build(self, *, is_full: bool = False) -> pl.DataFrame:
        """Bring the ledger up to date; return stage, rows and seconds of what was built."""

    def close(self) -> None:
        """Release the file or the connection."""


class LakePackage(Protocol):
    """What the package of lakes offers; see `packages.STORES`."""

    def lake_of(self, file: DatabaseFile, url: str, options: LakeOptions) -> Lake:
        """Open the lake that a database is of."""

    def attach(self, file: DatabaseFile, url: str) -> None:
        """Make a database one of a lake, which its builds read."""

    def store(self, url: str, cluster: str) -> Store:
        """Return a lake as what ingest and collect load into."""


def lake_package() -> LakePackage:
    """Return the package of lakes; raises PackageError, MissingExtraError where it cannot load."""
    package: LakePackage = packages.loaded(packages.STORES, "lake")
    return package


class LocalStore(DatabaseFile):
    """A database owned by this process; safe to use from several threads."""

    def __init__(
        self,
        path: str | Path = IN_MEMORY,
        *,
        threads: int | None = None,
        memory_mib: int | None = None,
        evaluation_counts: bool = False,
        objectives: Sequence[Objective] = (),
        serving_objectives: Sequence[ServingObjective] | None = None,
        lake: LakeOptions = DEFAULTS,
        is_from_template: bool = True,
        is_read_only: bool = False,
    ) -> None:
        """Open or create the database; raises StoreError where it cannot be opened.

        threads, memory_mib, is_from_template, is_read_only: see `DatabaseFile`.
        evaluation_counts: declared evaluation is useful time in every answer.
        objectives: what `marts.goodput_objectives` reports on.
        serving_objectives: what builds classify serving by; None: as the last build did.
        lake: how a database of a lake uses it.
        """
        variables: dict[str, object] = {}
        if evaluation_counts:
            variables["evaluation_counts"] = True
        if objectives:
            variables["goodput_objectives"] = as_variable(objectives)
        self.serving_objectives = serving_objectives
        self.lake_options = lake
        self._lake: Lake | None = None
        self.built_s = 0.0  # of this store
        super().__init__(
            path,
            threads=threads,
            memory_mib=memory_mib,
            variables=variables,
            is_from_template=is_from_template,
            is_read_only=is_read_only,
        )

    @property
    def lake(self) -> Lake | None:
        """Return the lake that the database is of; raises StoreError where it cannot be opened."""
        if self._lake is None:
            with self.cursor() as cursor:
                found = cursor.execute("select url from state.lake_versions limit 1").fetchall()
            if found:
                self._lake = lake_package().lake_of(self, found[0][0], self.lake_options)
        return self._lake

    def load(self, batch: Batch, *, is_polled: bool = False) -> Loaded:
        """Commit a batch in one short transaction; a part that was loaded before is skipped.

        A database of a lake loads into the lake: its next build brings what belongs here.
        """
        if self.lake is not None:
            return self.lake.load(batch)
        model = models.base_tables().get(batch.table)
        if model is None:
            raise StoreError(f"there is no table {batch.table!r}; see `goodput show`")
        try:
            with self.writing(is_shown=not is_polled) as cursor:
                return loading.load(cursor, model, batch)
        except duckdb.OutOfMemoryException as error:
            raise StoreError(f"{self.path}: the database is out of memory: {error}") from error
        except duckdb.Error as error:
            raise RowsRefusedError(
                f"{batch.origin}: its rows do not fit {model.qualified_name}: {error}"
            ) from error

    def build(self, *, is_full: bool = False) -> pl.DataFrame:
        """Bring the ledger up to date; see `goodput_queries.ledger_build.build`."""
        with self.unchanging():
            if self.is_read_only and not is_full:
                self.refuse_unless_built()
                return pl.DataFrame(schema=SUMMARY_SCHEMA)
            began_s = time.monotonic()
            try:
                if self.lake is not None:
                    self.lake.pull()
                return build(self, self.lake, self.serving_objectives, is_full=is_full)
            finally:
                self.built_s += time.monotonic() - began_s

    def back_up(self, target: str | Path) -> pl.DataFrame:
        """Copy the database to a path of this machine; see `storage.backup`."""
        return backup.back_up(self, target)

    def close(self) -> None:
        """Close the file; reads of other threads are interrupted."""
        if self._lake is not None:
            self._lake.close()
        super().close()


def open_store(
    path: str | Path, *, wait_s: float = 30.0, **options: Any
) -> LocalStore | RemoteStore:
    """Return the database at `path`: opened here, or through the process that has it open.

    options: as `LocalStore` takes them; of a database that is open already its process decides.
    A short-lived owner (another ingest) is waited for up to `wait_s`; then StoreError says who.
    """
    deadline = time.monotonic() + wait_s
    while True:
        if (server := find_server(path)) is not None:
            return server
        try:
            return LocalStore(path, **options)
        except StoreError as error:
            if "another process" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.2)

"""Raw tables in an open table format (Delta): many writers, one commit a batch, any engine reads.

    lake = Lake.open("s3://metrics/goodput", cluster="west")
    lake.append(batch)                                     # one commit; a repeat adds nothing
    for commit in lake.commits("gpu_samples", after=41):   # what was loaded since
        rows = lake.rows("gpu_samples", digests=[commit.digest])

The layout is that of docs/decisions/0143-lake.md.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import pyarrow as pa

from goodput_lake.tables import archive, delta
from goodput_lake.tables.append import Appender
from goodput_lake.tables.arrange import DIGEST, LakeTable, arranged, lake_table
from goodput_lake.tables.file_list import FileList
from goodput_lake.tables.loads import LakeCommit, loads_schema, rejects_of
from goodput_lake.tables.objects import LakePlace
from goodput_lake.tables.selection import Selection
from goodput_queries.errors import RowsRefusedError, StoreError
from goodput_queries.evidence.batch import Batch, Loaded

__all__ = ["Lake", "LakeCommit"]

FORMAT: Final = "1"
BUCKETS: Final = 16


class Lake(LakePlace):
    """A lake at a URL; safe to use from several threads, processes and hosts."""

    def __init__(
        self, url: str, buckets: int, cluster: str, storage_options: Mapping[str, str] | None
    ) -> None:
        """Take what `open` and `create` found."""
        super().__init__(url, cluster, storage_options)
        self.buckets = buckets
        self._appender = Appender(self)

    @classmethod
    def open(
        cls, url: str, *, cluster: str = "", storage_options: Mapping[str, str] | None = None
    ) -> Self:
        """Open the lake at a folder or a URL such as s3://bucket/prefix; creates nothing.

        cluster: of rows that name none; '' is unknown. storage_options: as `deltalake` takes them;
        credentials come from the environment. Raises StoreError where there is no lake.
        """
        url = _canonical(url)
        found = delta.opened(f"{url}/{archive.TABLE}", storage_options or {})
        if found is None:
            raise StoreError(f"{url}: there is no lake; make one with `goodput lake create`.")
        properties = found.metadata().configuration
        if properties.get("goodput.format") != FORMAT:
            raise StoreError(
                f"{url}: a lake of format {properties.get('goodput.format')}; this version reads "
                f"{FORMAT}."
            )
        return cls(url, int(properties["goodput.buckets"]), cluster, storage_options)

    @classmethod
    def create(
        cls,
        url: str,
        *,
        buckets: int = BUCKETS,
        cluster: str = "",
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Create a lake, or open it where it exists already; the number of buckets is for good."""
        url = _canonical(url)
        if buckets < 1:
            raise StoreError(f"a lake needs one bucket at least, not {buckets}.")
        properties = {"goodput.format": FORMAT, "goodput.buckets": str(buckets)}
        delta.create(f"{url}/{archive.TABLE}", loads_schema(), properties, storage_options or {})
        lake = cls.open(url, cluster=cluster, storage_options=storage_options)
        if lake.buckets != buckets:
            raise StoreError(f"{url}: this lake has {lake.buckets} buckets, not {buckets}.")
        return lake

    def append(self, batch: Batch) -> Loaded:
        """Commit a batch, its rejects first; one that was committed before adds nothing.

        Rows are not compared with those that are there: databases do that by key.
        Raises StoreError where the lake cannot be written.
        """
        table = lake_table(batch.table)
        rejects = len(batch.rejects)
        if self.cluster:  # the same file may be of two clusters, and not name them
            batch = replace(batch, digest=f"{batch.digest} of {self.cluster}")
        try:
            data = self._arranged(table, batch)
            if rejects:
                of_rejects, one = lake_table("rejects"), rejects_of(batch)
                self._appender.append(of_rejects, one, self._arranged(of_rejects, one))
            is_new = self._appender.append(table, batch, data)
        except RowsRefusedError as error:
            raise RowsRefusedError(f"{batch.origin}: {error}") from error
        rows = batch.rows.height
        return Loaded(rows, rows if is_new else 0, rejects, is_repeat=not is_new)

    def version(self, table: str) -> int | None:
        """Return the version of the latest commit of a table; None where it has none."""
        found = self._opened(table)
        return None if found is None else found.version()

    def commits(self, table: str, after: int = -1) -> list[LakeCommit]:
        """Return the loads of a table that were committed after a version, in order."""
        lake_table(table)  # an unknown name is an error, not an empty table
        return archive.loads_after(self, table, after)

    def rows(
        self,
        table: str,
        *,
        columns: Collection[str] | None = None,
        start_at: datetime | None = None,
        end_at: datetime | None = None,
        buckets: Collection[int] | None = None,
        digests: Collection[str] | None = None,
        version: int | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows of a table, read as they are asked for.

        columns: of the raw table, `load_digest`, and the partition columns; None: all of the raw
        table and `load_digest`. start_at, end_at: times of rows, the end not included; tables
        without a time have all their rows. version: as the table was then.
        """
        one, found = lake_table(table), self._opened(table, version)
        names = list(columns) if columns is not None else [*one.columns, DIGEST]
        if found is None:
            return _projected(one.schema, names).empty_table().to_reader()
        selection = Selection(one, start_at, end_at, buckets, digests)
        dataset = found.to_pyarrow_dataset(file_pruning_predicate=selection.of_files() or None)
        missing = [name for name in names if name not in dataset.schema.names]
        if missing:  # of a version that knew fewer columns
            dataset = dataset.replace_schema(_with(dataset.schema, one.schema, missing))
        scanner = dataset.scanner(columns=names, filter=selection.as_expression())
        # `to_reader` locks the interpreter, which Arrow's threads need to ask the store: they wait
        return pa.RecordBatchReader.from_batches(scanner.projected_schema, scanner.to_batches())

    def file_list(self, table: str) -> FileList | None:
        """Return the files of a table as it is now; None where there are none, or not in a folder.

        Stay with one list where answers are to be of one version.
        """
        found = None if "://" in self.url else self._opened(table)
        return None if found is None else FileList(found)

    def _opened(self, table: str, version: int | None = None) -> delta.deltalake.DeltaTable | None:
        """Return a table of the lake; None where nothing was written to it yet."""
        lake_table(table)  # an unknown name is an error, not an empty table
        return delta.opened(self.url_of(table), self.storage_options, version)

    def _arranged(self, table: LakeTable, batch: Batch) -> pa.Table:
        return arranged(
            table, batch.rows, digest=batch.digest, cluster=self.cluster, buckets=self.buckets
        )


def _canonical(url: str) -> str:
    """Return a URL without its last slash, a folder as an absolute path."""
    path = url.removeprefix("file://")
    return url.rstrip("/") if "://" in path else str(Path(path).expanduser().absolute())


def _projected(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _with(schema: pa.Schema, known: pa.Schema, missing: Collection[str]) -> pa.Schema:
    for name in missing:
        schema = schema.append(known.field(name))
    return schema

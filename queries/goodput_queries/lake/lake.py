"""Raw tables in an open table format (Delta): many writers, one commit a batch, any engine reads.

    lake = Lake.open("s3://metrics/goodput", cluster="west")
    lake.append(batch)                                     # one commit; a repeat adds nothing
    for commit in lake.commits("gpu_samples", after=41):   # what was loaded since
        rows = lake.rows("gpu_samples", digests=[commit.digest])

The layout is that of docs/decisions/0143-lake.md.
"""

from __future__ import annotations

import hashlib
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from goodput_queries.catalog import models
from goodput_queries.errors import RowsRefusedError, StoreError
from goodput_queries.evidence.batch import Loaded
from goodput_queries.evidence.load import REPLACE
from goodput_queries.lake.arrange import DIGEST, LakeTable, arranged, lake_table
from goodput_queries.lake.loads import (
    NOTE,
    LakeCommit,
    commit_of,
    loads_schema,
    note_of,
    rejects_of,
)
from goodput_queries.lake.objects import LakeObjects
from goodput_queries.lake.selection import Selection

try:
    import deltalake
    from deltalake import exceptions as delta_errors
except ImportError as error:
    raise StoreError(
        "a lake needs the package deltalake: pip install 'goodput-ledger[lake]'."
    ) from error

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    import pyarrow as pa

    from goodput_queries.evidence.batch import Batch

__all__ = ["Lake", "LakeCommit"]

FORMAT: Final = "1"
BUCKETS: Final = 16
LOADS: Final = "loads"  # the table whose properties are those of the lake
TRIES: Final = 40  # of a commit that others overtake; the library tries again as often itself
WAIT_S: Final = 0.05
COMMITS_BETWEEN_CHECKPOINTS: Final = "50"


class Lake:
    """A lake at a URL; safe to use from several threads, processes and hosts."""

    def __init__(
        self, url: str, buckets: int, cluster: str, storage_options: Mapping[str, str] | None
    ) -> None:
        """Take what `open` and `create` found."""
        self.url = url
        self.buckets = buckets
        self.cluster = cluster
        self.storage_options = dict(storage_options or {})
        self.objects = LakeObjects(url, self.storage_options)

    @classmethod
    def open(
        cls, url: str, *, cluster: str = "", storage_options: Mapping[str, str] | None = None
    ) -> Self:
        """Open the lake at a folder or a URL such as s3://bucket/prefix; creates nothing.

        cluster: of rows that name none; '' is unknown. storage_options: as `deltalake` takes them;
        credentials come from the environment. Raises StoreError where there is no lake.
        """
        url = _canonical(url)
        try:
            found = deltalake.DeltaTable(
                f"{url}/{LOADS}", storage_options=_options(storage_options)
            )
        except delta_errors.TableNotFoundError as error:
            raise StoreError(
                f"{url}: there is no lake; make one with `goodput lake create`."
            ) from error
        except (delta_errors.DeltaError, OSError, ValueError) as error:
            raise StoreError(f"{url}: the lake cannot be opened: {_first_line(error)}") from error
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
        try:
            deltalake.DeltaTable.create(
                f"{url}/{LOADS}",
                schema=deltalake.Schema.from_arrow(loads_schema()),
                mode="ignore",
                configuration={
                    "goodput.format": FORMAT,
                    "goodput.buckets": str(buckets),
                    **_table_properties([]),
                },
                storage_options=_options(storage_options),
                raise_if_key_not_exists=False,
            )
        except (delta_errors.DeltaError, OSError, ValueError) as error:
            raise StoreError(f"{url}: the lake cannot be created: {_first_line(error)}") from error
        lake = cls.open(url, cluster=cluster, storage_options=storage_options)
        if lake.buckets != buckets:
            raise StoreError(f"{url}: this lake has {lake.buckets} buckets, not {buckets}.")
        return lake

    def append(self, batch: Batch) -> Loaded:
        """Commit a batch, its rejects first; one that was committed before adds nothing.

        Rows are not compared with those that are there: compaction and databases do that by key.
        Raises StoreError where the lake cannot be written.
        """
        table = lake_table(batch.table)
        rejects = len(batch.rejects)
        try:
            data = self._arranged(table, batch)
            if rejects:
                self._append(lake_table("rejects"), rejects_of(batch))
            is_new = self._append(table, batch, data)
        except RowsRefusedError as error:
            raise RowsRefusedError(f"{batch.origin}: {error}") from error
        rows = batch.rows.height
        return Loaded(rows, rows if is_new else 0, rejects, is_repeat=not is_new)

    def tables(self) -> list[str]:
        """Return the raw tables that the lake has."""
        return [name for name in models.of_layer("raw") if self._exists(name)]

    def version(self, table: str) -> int | None:
        """Return the version of the latest commit of a table; None where it has none."""
        found = self._opened(table)
        return None if found is None else found.version()

    def commits(self, table: str, after: int = -1) -> list[LakeCommit]:
        """Return the loads of a table that were committed after a version, in order."""
        found = self._opened(table)
        if found is None or found.version() <= after:
            return []
        history = found.history(found.version() - max(after, -1))
        return [commit_of(table, one) for one in reversed(history) if NOTE in one]

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
        return dataset.scanner(columns=names, filter=selection.as_expression()).to_reader()

    def files(
        self,
        table: str,
        *,
        start_at: datetime | None = None,
        end_at: datetime | None = None,
        buckets: Collection[int] | None = None,
        digests: Collection[str] | None = None,
        version: int | None = None,
    ) -> list[str] | None:
        """Return the paths of the files that may have rows of a selection; None: not in a folder.

        The files have other rows too: filter times and digests. Partition columns are not in them.
        """
        if "://" in self.url:
            return None
        found = self._opened(table, version)
        if found is None:
            return []
        selection = Selection(lake_table(table), start_at, end_at, buckets, digests)
        return sorted(found.file_uris(file_pruning_predicate=selection.of_files() or None))

    def _url(self, table: str) -> str:
        return f"{self.url}/raw/{table}"

    def _exists(self, table: str) -> bool:
        return deltalake.DeltaTable.is_deltatable(
            self._url(table), storage_options=_options(self.storage_options)
        )

    def _opened(self, table: str, version: int | None = None) -> deltalake.DeltaTable | None:
        """Return a table of the lake; None where nothing was written to it yet."""
        lake_table(table)  # an unknown name is an error, not an empty table
        try:
            return deltalake.DeltaTable(
                self._url(table), version=version, storage_options=_options(self.storage_options)
            )
        except delta_errors.TableNotFoundError:
            return None
        except (delta_errors.DeltaError, OSError) as error:
            at = "" if version is None else f" at version {version}"
            raise StoreError(
                f"{self._url(table)}: cannot be read{at}: {_first_line(error)}"
            ) from error

    def _created(self, table: LakeTable) -> deltalake.DeltaTable:
        name = table.model.name
        for _ in range(TRIES):
            if (found := self._opened(name)) is not None:
                return found
            try:
                deltalake.DeltaTable.create(
                    self._url(name),
                    schema=deltalake.Schema.from_arrow(table.schema),
                    partition_by=table.partitions,
                    configuration=_table_properties(_described(table)),
                    storage_options=_options(self.storage_options),
                )
            except delta_errors.DeltaError as error:
                if self._opened(name) is None:  # else another writer was first
                    raise StoreError(
                        f"{self._url(name)}: cannot be created: {_first_line(error)}"
                    ) from error
        raise StoreError(f"{self._url(name)}: cannot be created.")

    def _arranged(self, table: LakeTable, batch: Batch) -> pa.Table:
        return arranged(
            table, batch.rows, digest=batch.digest, cluster=self.cluster, buckets=self.buckets
        )

    def _append(self, table: LakeTable, batch: Batch, data: pa.Table | None = None) -> bool:
        """Commit rows with the note of their load; return False where that was done before."""
        data = self._arranged(table, batch) if data is None else data
        load = hashlib.blake2b(
            f"{self.cluster}\0{batch.source}\0{batch.digest}".encode(), digest_size=16
        )
        for tries in range(TRIES):
            found = self._created(table)
            known = found.transaction_version(load.hexdigest())
            if known is not None and not self._is_overtaken(table, batch):
                return False
            try:
                deltalake.write_deltalake(
                    found,
                    data,
                    mode="append",
                    schema_mode="merge",
                    writer_properties=deltalake.WriterProperties(compression="ZSTD"),
                    commit_properties=deltalake.CommitProperties(
                        custom_metadata={NOTE: note_of(table, batch, self.cluster)},
                        max_commit_retries=TRIES,
                        app_transactions=[
                            deltalake.Transaction(load.hexdigest(), (known or 0) + 1)
                        ],
                    ),
                )
            except delta_errors.CommitFailedError:  # overtaken, perhaps by the same batch
                time.sleep(WAIT_S * random.uniform(1, 2 + min(tries, 8)))  # noqa: S311
            except (delta_errors.DeltaError, OSError) as error:
                raise StoreError(
                    f"{self._url(table.model.name)}: cannot be written: {_first_line(error)}"
                ) from error
            else:
                return True
        raise StoreError(
            f"{self._url(table.model.name)}: other writers were first {TRIES} times; nothing was "
            "written. Write larger batches, or fewer of them at once."
        )

    def _is_overtaken(self, table: LakeTable, batch: Batch) -> bool:
        """Say whether another load replaced this one, in a table where the last one holds."""
        if table.model.directives.get("keep") != REPLACE:
            return False
        last = self.commits(table.model.name)[-1]
        of_last = (last.cluster, last.source, last.digest)
        return of_last != (self.cluster, batch.source, batch.digest)


def _canonical(url: str) -> str:
    """Return a URL without its last slash, a folder as an absolute path."""
    path = url.removeprefix("file://")
    return url.rstrip("/") if "://" in path else str(Path(path).expanduser().absolute())


def _options(given: Mapping[str, str] | None) -> dict[str, str] | None:
    return dict(given) if given else None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _described(table: LakeTable) -> list[str]:
    """Return the columns of which a commit notes least and greatest values of each file."""
    names = [n for n in table.model.grain if n not in {"message", "content", "reason"}]
    return [DIGEST, *names, *([table.time] if table.time and table.time not in names else [])]


def _table_properties(described: list[str]) -> dict[str, str]:
    return {
        "delta.checkpointInterval": COMMITS_BETWEEN_CHECKPOINTS,
        "delta.enableExpiredLogCleanup": "false",  # loads are read from it; see `compact`
        **({"delta.dataSkippingStatsColumns": ",".join(described)} if described else {}),
    }


def _projected(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 -- as in `rows`

    return pa.schema([schema.field(name) for name in names])


def _with(schema: pa.Schema, known: pa.Schema, missing: Collection[str]) -> pa.Schema:
    for name in missing:
        schema = schema.append(known.field(name))
    return schema

"""Appends batches to the tables of a lake: one commit a batch, a repeat adds nothing."""

import contextlib
import hashlib
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from goodput_lake.tables import archive, delta
from goodput_lake.tables.arrange import LakeTable
from goodput_lake.tables.delta import delta_errors, deltalake
from goodput_lake.tables.loads import NOTE, note_of
from goodput_lake.tables.objects import LakePlace
from goodput_queries.errors import StoreError
from goodput_queries.evidence.batch import Batch
from goodput_queries.evidence.load import REPLACE

TRIES: Final = 40  # of a commit that others overtake; the library tries again as often itself
WAIT_S: Final = 0.05


class Appender:
    """Writes to the tables of a lake; keeps them open, since opening one reads its log.

    Threads of a process write to one table in turn.
    """

    def __init__(self, lake: LakePlace) -> None:
        """Take a lake; nothing is opened yet."""
        self._lake = lake
        self._tables: dict[str, deltalake.DeltaTable] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def append(self, table: LakeTable, batch: Batch, data: pa.Table) -> bool:
        """Commit rows with the note of their load; return False where that was done before."""
        name, url = table.model.name, self._lake.url_of(table.model.name)
        text = f"{batch.source}\0{batch.digest}"
        load = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        for tries in range(TRIES):
            with self._opened(table) as found:
                known = found.transaction_version(load)
                if known is not None and not self._is_overtaken(table, batch):
                    return False
                try:
                    self._write(found, table, batch, data, (load, (known or 0) + 1))
                except delta_errors.CommitFailedError:  # overtaken, perhaps by the same batch
                    pass
                except delta.FAILED as error:
                    del self._tables[name]
                    raise StoreError(
                        f"{url}: cannot be written: {delta.first_line(error)}"
                    ) from error
                else:
                    return True
            time.sleep(WAIT_S * random.uniform(1, 2 + min(tries, 8)))  # noqa: S311
        raise StoreError(
            f"{url}: other writers committed first {TRIES} times; nothing was written. Write "
            "larger batches, or fewer of them at once."
        )

    @contextlib.contextmanager
    def _opened(self, table: LakeTable) -> Iterator[deltalake.DeltaTable]:
        """Yield a table as it is now."""
        name, lake = table.model.name, self._lake
        with self._locks[name]:
            if name in self._tables:
                try:
                    self._tables[name].update_incremental()
                except delta.FAILED:  # commits since then may be gone from the log
                    del self._tables[name]
            if name not in self._tables:
                self._tables[name] = delta.created(lake.url_of(name), table, lake.storage_options)
            yield self._tables[name]

    def _write(
        self,
        found: deltalake.DeltaTable,
        table: LakeTable,
        batch: Batch,
        data: pa.Table,
        transaction: tuple[str, int],
    ) -> None:
        deltalake.write_deltalake(
            found,
            data,
            mode="append",
            schema_mode="merge",
            writer_properties=delta.WRITER,
            commit_properties=deltalake.CommitProperties(
                custom_metadata={NOTE: note_of(table, batch, self._lake.cluster)},
                max_commit_retries=TRIES,
                app_transactions=[deltalake.Transaction(*transaction)],
            ),
        )

    def _is_overtaken(self, table: LakeTable, batch: Batch) -> bool:
        """Say whether another load replaced this one, in a table where the last one holds."""
        if table.model.keep != REPLACE:
            return False
        last = archive.loads_after(self._lake, table.model.name, -1)[-1]
        return (last.source, last.digest) != (batch.source, batch.digest)

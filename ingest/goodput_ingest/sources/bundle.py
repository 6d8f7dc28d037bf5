"""A table of a bundle: rows of one raw table as Parquet, written by `goodput bundle`."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import polars as pl
import pyarrow.parquet as pq

from goodput_ingest.formats import parquet_columns
from goodput_ingest.source import Batch, ReadOptions
from goodput_queries.catalog import models
from goodput_queries.errors import IngestError
from goodput_queries.storage.row_groups import ROW_GROUP

README_BEGIN = "A bundle of Goodput:"  # of the text for people in it, which says nothing else
FORMAT_KEY, FORMAT = "goodput.bundle", "1"
TABLE_KEY = "goodput.table"
NO_TABLES = frozenset({"rejects", "catalog"})
BATCH_ROWS = 8 * ROW_GROUP


class Bundle:
    """One Parquet file of a bundle."""

    name: ClassVar[str] = "bundle"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file; its rows name their cluster and are in UTC."""
        del options
        self.path = path

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Say whether this is Parquet that names its table, or the text that goes with it."""
        is_table = head.startswith(parquet_columns.MAGIC) and TABLE_KEY in _metadata(path)
        return is_table or head.startswith(README_BEGIN.encode())

    def extract(self) -> Iterator[Batch]:
        """Yield the rows of its table, a batch a source; raises IngestError."""
        with self.path.open("rb") as file:
            if file.read(len(README_BEGIN)) == README_BEGIN.encode():
                return
        said = _metadata(self.path)
        if said.get(FORMAT_KEY) != FORMAT:
            raise IngestError(
                f"{self.path}: expected a table of a bundle of format {FORMAT}, found "
                f"{said.get(FORMAT_KEY, 'none')}. A newer Goodput may have written it."
            )
        model = models.of_layer("raw").get(said.get(TABLE_KEY, ""))
        if model is None or model.name in NO_TABLES:
            raise IngestError(f"{self.path}: there is no table {said.get(TABLE_KEY)!r}.")
        columns, groups = parquet_columns.described(self.path)
        heights = [BATCH_ROWS] * (1 + sum(groups) // BATCH_ROWS)
        if columns.get("source") != pl.String or any(
            part["source"].has_nulls()
            for part in parquet_columns.parts(self.path, heights, ["source"])
        ):
            raise IngestError(f"{self.path}: each row needs the source it came from.")
        with self.path.open("rb") as file:
            content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        for number, rows in enumerate(parquet_columns.parts(self.path, heights)):
            digest = f"{content} {number} {BATCH_ROWS}"
            for (source,), part in rows.partition_by("source", as_dict=True).items():
                yield Batch(model.name, part, str(source), str(self.path), digest)


def _metadata(path: Path) -> dict[str, str]:
    """Return what a Parquet file says of itself; nothing where it is none."""
    try:
        with pq.ParquetFile(path) as file:
            found = file.metadata.metadata or {}
    except parquet_columns.UNREADABLE:
        return {}
    return {
        key.decode(errors="replace"): value.decode(errors="replace") for key, value in found.items()
    }

"""Parquet files: their columns, by which sources recognise themselves, and their rows, in parts.

A small file may unpack to a huge one, as archives do. They are decoded by Arrow: a byte that is
wrong in a file makes Polars end the process, as it asks for more memory than there is.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PanicException

from goodput_ingest.formats.json_text.json_lines import printable
from goodput_ingest.formats.packed import ALWAYS_BYTES, RATIO_MAX
from goodput_queries.errors import IngestError
from goodput_queries.storage.row_groups import ROW_GROUP

MAGIC = b"PAR1"
VALUE_BYTES = 8  # of a number in memory; texts take more
REASON_MAX_CHARS = 200
UNREADABLE = (
    *(OSError, UnicodeError, pa.ArrowException, pl.exceptions.PolarsError),
    PanicException,  # of Polars, of a name that is no text
)


def names(path: Path, head: bytes) -> set[str]:
    """Return the names of the columns; none where `head` is not of a Parquet file or it is cut."""
    if not head.startswith(MAGIC):
        return set()
    try:
        return set(pq.read_schema(path).names)
    except UNREADABLE:
        return set()


def described(path: Path) -> tuple[pl.Schema, list[int]]:
    """Return the columns, and the rows of each row group.

    Raises IngestError, also for a file that unpacks to too much.
    """
    size = path.stat().st_size
    try:
        with pq.ParquetFile(path) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            unpacked = sum(
                max(chunk.total_uncompressed_size, VALUE_BYTES * chunk.num_values)
                for group in groups
                for chunk in map(group.column, range(group.num_columns))
            )
            schema = pl.DataFrame(file.schema_arrow.empty_table()).schema
    except UNREADABLE as error:
        raise _unreadable(path, "this is not a Parquet file that can be read", error) from error
    rows = [group.num_rows for group in groups]
    if max(unpacked, VALUE_BYTES * sum(rows)) > max(ALWAYS_BYTES, RATIO_MAX * size):
        raise IngestError(
            f"{path}: this Parquet file of {size:,} bytes unpacks to {sum(rows):,} rows of "
            f"{unpacked >> 20:,} MiB, over {RATIO_MAX} times its size: export less in one file."
        )
    return schema, rows


def parts(
    path: Path, heights: Sequence[int], columns: Sequence[str] | None = None
) -> Iterator[pl.DataFrame]:
    """Yield the rows in parts of these heights; raises IngestError."""
    done = 0
    try:
        with pq.ParquetFile(path) as file:
            texts = [one.name for one in file.schema_arrow if _is_text(one.type)]
        # texts come with their dictionary, a quarter of the time
        with pq.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
            batches = file.iter_batches(ROW_GROUP, columns=columns)
            rest = pl.DataFrame()
            for height in heights:
                found = [rest] if rest.height else []
                while sum(one.height for one in found) < height:
                    if (batch := next(batches, None)) is None:
                        break
                    frame = pl.DataFrame(batch)
                    found.append(frame.cast({n: pl.String for n in texts if n in frame.columns}))
                if not found:
                    return
                rows = pl.concat(found)
                part, rest = rows.head(height), rows.slice(height)
                yield part
                done += part.height
    except UNREADABLE as error:
        raise _unreadable(path, f"row {done + 1} on cannot be read", error) from error


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _unreadable(path: Path, said: str, error: BaseException) -> IngestError:
    reason = next(iter(str(error).splitlines()), "") or type(error).__name__
    return IngestError(f"{path}: {said}: {printable(reason, REASON_MAX_CHARS)}")

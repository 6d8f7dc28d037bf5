"""Rows of the CSV files that a site writes, each read by a function of its source."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from goodput_ingest.formats import csv_table
from goodput_ingest.source import ReadOptions
from goodput_queries.evidence.batch import Reject

Row = TypeVar("Row")


@dataclass(frozen=True)
class SiteRows(Generic[Row]):
    """The valid rows of a file, the rejects, and the digest of its content."""

    rows: list[Row]
    rejects: list[Reject]
    digest: str


def read_rows(
    path: Path,
    options: ReadOptions,
    columns: Sequence[str],
    required: Sequence[str],
    name: str,
    row_of: Callable[[dict[str, str], csv_table.Instant], Row],
    times: Sequence[str] = ("valid_from", "valid_to"),
) -> SiteRows[Row]:
    """Return the result of `row_of` for each row; a row for which it raises ValueError is rejected.

    Raises IngestError for a header with an unknown column or without a required one.
    """
    found = csv_table.read(path, known=columns, required=required, name=name)
    content = f"{found.text}\n{options.zone}\n{options.cluster}"
    rejects = [
        Reject(line, f"{name}: line {line} has another number of cells.", text)
        for line, text in found.odd
    ]
    rows: list[Row] = []
    texts = (row.get(time, "") for _, row in found.rows for time in times)
    instant = csv_table.clock(texts, options.zone)
    for line, row in found.rows:
        try:
            rows.append(row_of(row, instant))
        except ValueError as error:
            rejects.append(Reject(line, f"{name}: line {line}: {error}.", ",".join(row.values())))
    return SiteRows(rows, rejects, hashlib.blake2b(content.encode(), digest_size=16).hexdigest())

"""CSV files that a site writes, each row read by a method of its source."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from goodput_ingest.formats import csv_table, raw_tables
from goodput_ingest.formats.parsed import Parsed, frame
from goodput_ingest.source import Batch, RecordedFile
from goodput_queries.evidence.batch import Reject


class SiteTable(RecordedFile):
    """A CSV file of a site, whose header names the columns; a subclass says which, and reads a row.

    table: the raw table that rows become. columns: all that a header may name. required: those that
    it must. any_of: of these one, for the file to be recognised. times: columns of times.
    """

    name: ClassVar[str]
    table: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    required: ClassVar[tuple[str, ...]] = ()
    any_of: ClassVar[frozenset[str]] = frozenset()
    times: ClassVar[tuple[str, ...]] = ("valid_from", "valid_to")

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:  # noqa: ARG003 -- judged by content alone
        """Say whether the header has what such a file needs, and nothing that is not known."""
        names = set(csv_table.header_names(head))
        has_any = not cls.any_of or not names.isdisjoint(cls.any_of)
        return has_any and set(cls.required) <= names <= set(cls.columns)

    def extract(self) -> Iterator[Batch]:
        """Yield the rows of raw tables; a row that cannot be read is a reject.

        Raises IngestError for a header with an unknown column or without a required one.
        """
        options, name = self.options, self.name
        found = csv_table.read(self.path, known=self.columns, required=self.required, name=name)
        rejects = [
            Reject(line, f"{name}: line {line} has another number of cells.", text)
            for line, text in found.odd
        ]
        rows: list[Any] = []
        texts = (row.get(time, "") for _, row in found.rows for time in self.times)
        instant = csv_table.clock(texts, options.zone)
        for line, row in found.rows:
            try:
                rows.append(self.row(row, instant))
            except ValueError as error:
                text = ",".join(row.values())
                rejects.append(Reject(line, f"{name}: line {line}: {error}.", text))
        content = f"{found.text}\n{options.zone}\n{options.cluster}"
        digest = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
        for parsed in self.tables(rows, rejects):
            yield parsed.batch(source=name, origin=str(self.path), digest=digest)

    def row(self, row: dict[str, str], instant: csv_table.Instant) -> Any:
        """Return what a row says, for `tables`; ValueError says what is wrong with it."""
        raise NotImplementedError

    def tables(self, rows: list[Any], rejects: list[Reject]) -> list[Parsed]:
        """Return the rows of raw tables, the first with the rejects."""
        return [Parsed(self.table, frame(rows, raw_tables.columns(self.table, "source")), rejects)]

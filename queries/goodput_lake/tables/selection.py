"""Which rows of a table of the lake are wanted, as conditions on files and on rows."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from goodput_lake.tables.arrange import BUCKET, DAY, DIGEST, LakeTable


@dataclass(frozen=True)
class Selection:
    """Which rows of a table are wanted."""

    table: LakeTable
    start_at: datetime | None
    end_at: datetime | None
    buckets: Collection[int] | None
    digests: Collection[str] | None

    def of_rows(self) -> Iterator[tuple[str, str, Any]]:
        """Yield the conditions on rows."""
        if self.table.time and self.start_at is not None:
            yield self.table.time, ">=", self.start_at
        if self.table.time and self.end_at is not None:
            yield self.table.time, "<", self.end_at
        if self.buckets is not None and BUCKET in self.table.partitions:
            yield BUCKET, "in", sorted(self.buckets)
        if self.digests is not None:
            yield DIGEST, "in", sorted(self.digests)

    def of_files(self) -> list[tuple[str, str, Any]]:
        """Return the conditions on files: those on rows and the days of their times."""
        found = list(self.of_rows())
        if self.table.time and self.start_at is not None:
            found.append((DAY, ">=", self.start_at.date()))
        if self.table.time and self.end_at is not None:
            found.append((DAY, "<=", self.end_at.date()))
        return found

    def as_expression(self) -> Any:
        """Return the conditions on rows as pyarrow takes them; None: all rows."""
        import pyarrow.dataset as ds  # noqa: PLC0415 -- a tenth of a second that no writer needs

        found = None
        for column, operator, value in self.of_rows():
            field = ds.field(column)
            one = field.isin(list(value)) if operator == "in" else field >= value
            one = field < value if operator == "<" else one
            found = one if found is None else found & one
        return found

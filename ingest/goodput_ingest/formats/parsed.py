"""The result of a parse function: rows of a raw table, before their source is added."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from goodput_queries.evidence.batch import Batch, Reject

INSTANT = pl.Datetime("us")
TEXT_MAX_CHARS = 4_096  # a field of a hostile or broken record is cut here


@dataclass(frozen=True)
class Parsed:
    """Rows of one raw table (without `source`), the rejected rows, and a note of the batch."""

    table: str
    rows: pl.DataFrame
    rejects: Sequence[Reject] = field(default=())
    note: str = ""

    def batch(self, *, source: str, origin: str, digest: str) -> Batch:
        """Return the batch that the store loads."""
        return Batch(
            table=self.table,
            rows=self.rows.with_columns(pl.lit(source).alias("source")),
            source=source,
            origin=origin,
            digest=digest,
            rejects=self.rejects,
            note=self.note,
        )


def with_rows(found: Sequence[Parsed], rejects: Sequence[Reject]) -> list[Parsed]:
    """Return those that have rows, the first with the rejects: one without rows if none has."""
    kept = [parsed for parsed in found if not parsed.rows.is_empty()]
    if rejects:
        first, *others = kept or found[:1]
        kept = [replace(first, rejects=rejects), *others]
    return kept


def frame(rows: Sequence[Mapping[str, object]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return rows as a frame of exactly these columns."""
    return pl.DataFrame(
        [{name: row.get(name) for name in schema} for row in rows],
        schema=dict(schema),
        orient="row",
    )

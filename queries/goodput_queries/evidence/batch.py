"""What an ingestor hands to the store: rows of one raw table and the rows it had to set aside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from goodput_queries.evidence.batch_keys import Keys

REJECT_CONTENT_MAX_CHARS = 500
# Rows that DuckDB writes as one, half of its usual. So many are compressed and put in their place
# as they come; fewer go by way of the log and are written again. A fleet's five minutes fill one.
ROW_GROUP = 61_440


@dataclass(frozen=True)
class Reject:
    """A row that was set aside: where it stood, why, and the row itself (capped)."""

    line: int | None
    reason: str
    content: str = ""


@dataclass(frozen=True)
class Batch:
    """Rows of one raw table, read from one part of one origin; loaded in one transaction.

    `rows` carries columns of `raw.<table>` by name, `source` included; a column that is left out is
    null. Timestamps are naive `Datetime("us")` in UTC. `digest` identifies the part's content: a
    part that was loaded before is skipped, so that repeating an ingest changes nothing. `keys` is
    what `loading.prepared` finds; without it loading looks itself.
    """

    table: str
    rows: pl.DataFrame
    source: str
    origin: str
    digest: str
    rejects: Sequence[Reject] = field(default=())
    keys: Keys | None = None


@dataclass(frozen=True)
class Loaded:
    """What became of a batch: rows read, rows that were new, rows set aside."""

    rows: int
    rows_new: int
    rejects: int
    is_repeat: bool

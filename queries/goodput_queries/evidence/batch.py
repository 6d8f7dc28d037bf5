"""Batches: rows of one raw table and rejected rows, as an ingestor passes them to the store."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from goodput_queries.evidence.batch_keys import Keys

REJECT_CONTENT_MAX_CHARS = 500
CONTENT_CHARS = (
    12  # before "-" in the digest of what is read by options: a digest of the content alone
)


@dataclass(frozen=True)
class Reject:
    """A rejected row: its line, the reason, and its content (capped)."""

    line: int | None
    reason: str
    content: str = ""


@dataclass(frozen=True)
class Batch:
    """Rows of one raw table, read from one part of one origin; loaded in one transaction.

    `rows` carries columns of `raw.<table>` by name, `source` included; a column that is left out is
    null. Timestamps are naive `Datetime("us")` in UTC. `digest` identifies the part's content: a
    part that was loaded before is skipped, so that repeating an ingest changes nothing. `keys` is
    what `loading.prepared` finds; without it loading looks itself. `note` is a sentence for whoever
    ingests: what the origin would give with another option.
    """

    table: str
    rows: pl.DataFrame
    source: str
    origin: str
    digest: str
    rejects: Sequence[Reject] = field(default=())
    keys: Keys | None = None
    note: str = ""


@dataclass(frozen=True)
class Loaded:
    """The result of loading a batch: rows read, new rows, rejected rows.

    is_read_otherwise: the same lines of this file were loaded before with another meaning
    """

    rows: int
    rows_new: int
    rejects: int
    is_repeat: bool
    is_read_otherwise: bool = False

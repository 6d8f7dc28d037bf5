"""Batches: rows of one raw table and rejected rows, as an ingestor passes them to the store."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

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
    part that was loaded before is skipped, so that repeating an ingest changes nothing. `note` is a
    sentence for whoever ingests: what the origin would give with another option.
    """

    table: str
    rows: pl.DataFrame
    source: str
    origin: str
    digest: str
    rejects: Sequence[Reject] = field(default=())
    note: str = ""


@dataclass(frozen=True)
class Loaded:
    """The result of loading a batch: rows read, new rows, rejected rows.

    is_read_otherwise: the same lines of this file were loaded before with another meaning;
        is_known: and gave the same rows
    differing: rows left out, since another one of their key, of differs_from, has another value;
        "": of this file
    """

    rows: int
    rows_new: int
    rejects: int
    is_repeat: bool
    is_read_otherwise: bool = False
    is_known: bool = False
    differing: int = 0
    differs_from: str = ""


def rows_of_rejects(batch: Batch) -> pl.DataFrame:
    """Return the rejects of a batch as rows of raw.rejects."""
    return pl.DataFrame(
        {
            "source": [batch.source] * len(batch.rejects),
            "origin": [batch.origin] * len(batch.rejects),
            "line": [one.line for one in batch.rejects],
            "reason": [one.reason for one in batch.rejects],
            "content": [one.content[:REJECT_CONTENT_MAX_CHARS] for one in batch.rejects],
        },
        schema_overrides={"line": pl.Int64},
    )

"""Turns parsed answers into batches for the store."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.prometheus_api.answer import Answer
from goodput_ingest.source import Batch, Reject


def digest_of(answers: Iterable[Answer], *meaning: object) -> str:
    """Return a digest of the answers with all else that their rows depend on."""
    found = hashlib.blake2b(digest_size=16)
    for part in (*(answer.digest for answer in answers), *map(str, meaning)):
        found.update(f"{part}\x1f".encode())
    return found.hexdigest()


def batches(
    parsed: Sequence[Parsed],
    rejects: Sequence[Reject],
    source: str,
    origin: str,
    digest: str,
    *,
    table: str = "gpu_samples",
) -> Iterator[Batch]:
    """Yield a batch a table; the first one carries the rejects.

    table: where there are no rows at all, the one whose empty batch carries the rejects.
    """
    if rejects:
        first, *others = parsed or [Parsed(table, pl.DataFrame())]
        parsed = [Parsed(first.table, first.rows, [*first.rejects, *rejects]), *others]
    for one in parsed:
        yield one.batch(source=source, origin=origin, digest=digest)

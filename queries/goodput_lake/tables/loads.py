"""Loads of a lake: what a commit notes of its batch, and how it is read back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from goodput_lake.tables.arrange import LakeTable, window
from goodput_lake.tables.objects import LakeObjects
from goodput_queries.evidence.batch import Batch, rows_of_rejects

COMMITS_AT_ONCE: Final = 16  # read from a log, until a load is among them
NOTE: Final = "goodput"  # under this key a commit says which load it is
EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 -- as all moments of the store: naive UTC


@dataclass(frozen=True)
class LakeCommit:
    """A load: one commit to one table. Moments are naive UTC.

    cluster: of the process that wrote it, '' where it named none; rows may name others.
    """

    table: str
    version: int
    committed_at: datetime
    cluster: str
    source: str
    origin: str
    digest: str
    rows: int
    rejects: int
    window_start_at: datetime | None
    window_end_at: datetime | None


def note_of(table: LakeTable, batch: Batch, cluster: str) -> dict[str, Any]:
    """Return what the commit of a batch notes of it."""
    start, end = window(table, batch.rows)
    return {
        "cluster": cluster,
        "source": batch.source,
        "origin": batch.origin,
        "digest": batch.digest,
        "rows": batch.rows.height,
        "rejects": len(batch.rejects),
        "window_start_us": _us(start),
        "window_end_us": _us(end),
    }


def versions_in_log(objects: LakeObjects, table: str, after: int) -> list[int]:
    """Return the versions after one whose commits the log of a table has, in order."""
    names = objects.names(_log(table), after=f"{after:020}.json")
    found = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(int(name) for name in found if name.isdecimal())


def logged(objects: LakeObjects, table: str, versions: Sequence[int]) -> list[LakeCommit]:
    """Return the loads among these commits of the log of a table, in order.

    `DeltaTable.history` would stop all threads of the process while it reads.
    """
    texts = objects.texts([f"{_log(table)}/{version:020}.json" for version in versions])
    found = (
        _load_of(table, version, text)
        for version, text in zip(versions, texts, strict=True)
        if text is not None  # cleaned up meanwhile
    )
    return [load for load in found if load is not None]


def last_logged(objects: LakeObjects, table: str) -> LakeCommit | None:
    """Return the last load that the log of a table has; None: there is none."""
    versions = versions_in_log(objects, table, -1)
    for end in range(len(versions), 0, -COMMITS_AT_ONCE):  # compactions are commits too
        if found := logged(objects, table, versions[max(0, end - COMMITS_AT_ONCE) : end]):
            return found[-1]
    return None


def _log(table: str) -> str:
    return f"raw/{table}/_delta_log"


def _load_of(table: str, version: int, text: str) -> LakeCommit | None:
    """Return the load that a commit of the log notes; None: it is none, as a compaction is."""
    actions = map(json.loads, text.splitlines())
    entry = next((action["commitInfo"] for action in actions if "commitInfo" in action), None)
    if entry is None or NOTE not in entry:
        return None
    note = dict(entry[NOTE])
    return LakeCommit(
        table=table,
        version=version,
        committed_at=EPOCH + timedelta(milliseconds=entry["timestamp"]),
        window_start_at=_at(note.pop("window_start_us")),
        window_end_at=_at(note.pop("window_end_us")),
        **note,
    )


def _us(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // timedelta(microseconds=1)


def _at(us: int | None) -> datetime | None:
    return None if us is None else EPOCH + timedelta(microseconds=us)


def rejects_of(batch: Batch) -> Batch:
    """Return the rejects of a batch as a batch of their own, with the digest of both."""
    digest = f"{batch.digest} {batch.table}"
    return replace(batch, table="rejects", rows=rows_of_rejects(batch), digest=digest, rejects=())


def loads_schema() -> pa.Schema:
    """Return the columns of the table of loads."""
    text, number, moment = pa.string(), pa.int64(), pa.timestamp("us")
    kinds = {"table": text, "version": number, "committed_at": moment, "cluster": text}
    kinds |= {"source": text, "origin": text, "digest": text, "rows": number, "rejects": number}
    return pa.schema(kinds | {"window_start_at": moment, "window_end_at": moment})

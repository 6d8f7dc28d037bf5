"""From sources to the store: read, parse, then commit each batch in one short transaction."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from goodput_ingest.formats import files
from goodput_ingest.formats.prefetch import ahead
from goodput_ingest.run import find_files
from goodput_ingest.run.find_files import Found, LeftOut
from goodput_ingest.run.plausible_time import PlausibleTime
from goodput_ingest.run.unexpected import CAUGHT, unexpected
from goodput_ingest.sources.registry import SOURCES, recognise
from goodput_queries.errors import GoodputError, IngestError, RowsRefusedError, UnexpectedError
from goodput_queries.evidence.batch import ROW_GROUP, Batch
from goodput_queries.evidence.load import prepared
from goodput_queries.evidence.retention import OF_READINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from goodput_ingest.source import ReadOptions
    from goodput_queries.evidence.batch import Loaded
    from goodput_queries.storage.store import Store

ROWS_AHEAD = 2 * ROW_GROUP  # so much is parsed while what came before is written
SIZE_MIN = 10_000  # what is small takes its time too, and is not to wait long


@dataclass
class Summary:
    """What an ingest did, for the last line a person reads."""

    files: int = 0
    rows: int = 0
    rows_new: int = 0
    rejects: int = 0
    repeats: int = 0  # rows that were there already, or twice in a file
    unrecognised: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # why, a sentence a file
    failed: list[str] = field(default_factory=list)  # files that met a defect of ours, the same
    rows_by_table: dict[str, int] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)  # origins whose readings were dropped by age

    def add(self, table: str, loaded: Loaded) -> None:
        """Count a batch."""
        self.rows += loaded.rows
        self.rows_new += loaded.rows_new
        self.rejects += loaded.rejects
        self.repeats += loaded.rows - loaded.rows_new
        self.rows_by_table[table] = self.rows_by_table.get(table, 0) + loaded.rows_new


def ingest(
    store: Store,
    name: str,
    paths: Sequence[Path],
    options: ReadOptions,
    *,
    on_progress: Callable[[Path, int], None] = lambda _path, _rows: None,
    is_reopening: bool = False,
) -> Summary:
    """Read files (folders and archives are walked) as source `name` (`auto`: by content) in.

    A file that is refused (not this format, or it lacks what only a person knows, as a time zone)
    is listed in the summary and the others are read. Only a file that is itself in `paths` of a
    named source raises IngestError at once. A file whose reader breaks down is listed too.

    is_reopening: read parts in again of which readings were dropped by age.
    """
    if name != "auto" and name not in SOURCES:
        raise IngestError(f"there is no source {name!r}; known: auto, {', '.join(SOURCES)}.")
    summary = Summary()
    frozen = _FrozenTime(store)
    for told in ahead(_told(name, paths, options), _size, ROWS_AHEAD):
        if isinstance(told, LeftOut):
            summary.refused.append(told.reason)
        elif isinstance(told, _Unrecognised):
            summary.unrecognised.append(told.origin)
        elif isinstance(told, _Refused) and isinstance(told.error, UnexpectedError):
            summary.failed.append(str(told.error))
        elif isinstance(told, _Refused):
            if name != "auto" and told.found.is_named:
                raise told.error
            reason = str(told.error).replace(str(told.found.path), told.found.origin)
            summary.refused.append(reason)
        elif isinstance(told, Batch):
            is_frozen = frozen.has(told)
            try:
                loaded = store.load(frozen.reopened(told) if is_frozen and is_reopening else told)
            except RowsRefusedError as error:
                summary.failed.append(str(error))
                continue
            except (GoodputError, MemoryError):  # of the database: the next batch fails too
                raise
            except CAUGHT as error:
                summary.failed.append(str(unexpected(told.origin, error)))
                continue
            summary.add(told.table, loaded)
            if is_frozen and loaded.is_repeat:
                summary.frozen.add(told.origin)
            on_progress(Path(told.origin), loaded.rows)
        else:
            summary.files += 1
    return summary


class _FrozenTime:
    """The time whose readings retention has dropped from a store."""

    def __init__(self, store: Store) -> None:
        found = store.read(
            "select from_ms(max(kept_from_ms)) from raw.kept_from where table_name = 'gpu_samples'"
        )
        self._until: datetime | None = found.item()

    def has(self, batch: Batch) -> bool:
        """Say whether readings of this batch are of the time."""
        if self._until is None or f"raw.{batch.table}" not in OF_READINGS or batch.rows.is_empty():
            return False
        return bool((batch.rows["ts"] < self._until).any())

    def reopened(self, batch: Batch) -> Batch:
        """Return the batch under a digest that is none of those before it was dropped."""
        return replace(batch, digest=f"{batch.digest} reopened before {self._until}")


@dataclass(frozen=True)
class _Unrecognised:
    origin: str


@dataclass(frozen=True)
class _Refused:
    found: Found
    error: IngestError


@dataclass(frozen=True)
class _ReadThrough:
    """A file has no more to tell."""


_Told = Batch | LeftOut | _Unrecognised | _Refused | _ReadThrough


def _told(name: str, paths: Sequence[Path], options: ReadOptions) -> Iterator[_Told]:
    """Yield what there is to load, and what becomes of each file, in the order of the files."""
    for found in find_files.found(paths):
        if isinstance(found, LeftOut):
            yield found
            continue
        plausible = PlausibleTime(options.earliest, is_recorded=True)
        try:
            kind = recognise(found.path) if name == "auto" else SOURCES[name]
            if kind is None:
                yield _Unrecognised(found.origin)
                continue
            for batch in kind(found.path, options).extract():
                yield prepared(plausible.checked(replace(batch, origin=found.origin)))
        except IngestError as error:
            yield _Unrecognised(found.origin) if _is_beside(found, name) else _Refused(found, error)
        except MemoryError:
            raise
        except CAUGHT as error:
            yield _Refused(found, unexpected(found.origin, error))
        else:
            yield _ReadThrough()


def _is_beside(found: Found, name: str) -> bool:
    """Say whether a file of a folder or archive lies beside a source's own as a rule."""
    is_beside = getattr(SOURCES.get(name), "is_beside", None)
    return (
        is_beside is not None
        and not found.is_named
        and is_beside(found.path, files.head(found.path))
    )


def _size(told: _Told) -> int:
    return max(SIZE_MIN, told.rows.height if isinstance(told, Batch) else 0)

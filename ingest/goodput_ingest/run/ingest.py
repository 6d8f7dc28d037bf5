"""From sources to the store: read, parse, then commit each batch in one short transaction."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from goodput_ingest.formats import files
from goodput_ingest.prefetch import prefetch
from goodput_ingest.run import find_files
from goodput_ingest.run.contents import Contents
from goodput_ingest.run.find_files import Found, SkippedFile
from goodput_ingest.run.hints import hint_of
from goodput_ingest.run.plausible_time import PlausibleTime
from goodput_ingest.run.unexpected import CAUGHT, unexpected
from goodput_ingest.source import ReadOptions, Source
from goodput_ingest.sources.job_logs.source import JobLog
from goodput_ingest.sources.kernel_log.kernel_log import KernelLog
from goodput_ingest.sources.registry import recognise, sources
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError, IngestError, RowsRefusedError, UnexpectedError
from goodput_queries.evidence.batch import Batch, Loaded
from goodput_queries.evidence.load import prepared
from goodput_queries.evidence.retention import OF_READINGS
from goodput_queries.storage.row_groups import ROW_GROUP

ROWS_AHEAD = 2 * ROW_GROUP  # so much is parsed while what came before is written
SIZE_MIN = 10_000  # what is small takes its time too, and is not to wait long


@dataclass
class Summary:
    """Counts of an ingest for its last line of output."""

    files: int = 0
    rows: int = 0
    rows_new: int = 0
    rejects: int = 0
    repeats: int = 0  # rows that were there already, or twice in a file
    unrecognised: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)  # what would be read instead, a sentence a file
    gaps: list[str] = field(default_factory=list)  # what files did not give, a sentence each
    refused: list[str] = field(default_factory=list)  # why, a sentence a file
    failed: list[str] = field(default_factory=list)  # files that met a defect of ours, the same
    rows_by_table: dict[str, int] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)  # what files did not give for want of an option
    frozen: set[str] = field(default_factory=set)  # origins whose readings were dropped by age
    changed: set[str] = field(default_factory=set)  # origins that gave what was not there
    # rows left out, by origin and by the one whose row of the same key has another value
    differing: Counter[tuple[str, str]] = field(default_factory=Counter)
    # origins, and whether they were ingested with other options before: what their first batch says
    read_otherwise: dict[str, bool] = field(default_factory=dict)

    def add(self, origin: str, table: str, loaded: Loaded, options: ReadOptions) -> None:
        """Count a batch of an origin."""
        is_same = loaded.is_repeat or options.observed_at is not None  # or one more snapshot
        self.read_otherwise.setdefault(origin, loaded.is_read_otherwise and not is_same)
        if not loaded.is_known and not loaded.is_repeat:
            self.changed.add(origin)
        self.rows += loaded.rows
        self.rows_new += loaded.rows_new
        self.rejects += loaded.rejects
        self.repeats += loaded.rows - loaded.rows_new
        if loaded.differing:
            self.differing[origin, loaded.differs_from or origin] += loaded.differing
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
    """Ingest files, folders and archives as source `name` (`auto`: recognised by content).

    A refused file (another format, or a required option such as the time zone is missing) is
    listed in the summary and the others are read. Only the one file that is all of `paths` of a
    named source raises IngestError. A file whose parser fails is listed too.

    is_reopening: load parts again whose readings retention has dropped.
    """
    if name != "auto" and name not in sources():
        raise IngestError(f"there is no source {name!r}; known: auto, {', '.join(sources())}.")
    summary = Summary()
    frozen = _FrozenTime(store)
    for event in prefetch(_read_files(name, paths, options), _size, ROWS_AHEAD):
        if isinstance(event, SkippedFile):
            summary.refused.append(event.reason)
        elif isinstance(event, _Unrecognised):
            summary.unrecognised.append(event.origin)
            summary.hints += [f"{event.origin}: {event.hint}"] if event.hint else []
        elif isinstance(event, _Refused) and isinstance(event.error, UnexpectedError):
            summary.failed.append(str(event.error))
        elif isinstance(event, _Refused):
            if name != "auto" and event.found.is_named and len(paths) == 1:
                raise event.error
            reason = str(event.error).replace(str(event.found.path), event.found.origin)
            summary.refused.append(reason)
        elif isinstance(event, Batch):
            is_frozen = frozen.has(event)
            try:
                loaded = store.load(frozen.reopened(event) if is_frozen and is_reopening else event)
            except RowsRefusedError as error:
                summary.failed.append(str(error))
                continue
            except (GoodputError, MemoryError):  # of the database: the next batch fails too
                raise
            except CAUGHT as error:
                summary.failed.append(str(unexpected(event.origin, error)))
                continue
            summary.add(event.origin, event.table, loaded, options)
            summary.notes |= {event.note} - {""}
            if is_frozen and loaded.is_repeat:
                summary.frozen.add(event.origin)
            on_progress(Path(event.origin), loaded.rows)
        else:
            summary.files += 1
            summary.gaps += [f"{event.origin}: {gap}" for gap in event.gaps]
    return summary


class _FrozenTime:
    """The time before which retention has dropped readings from a store."""

    def __init__(self, store: Store) -> None:
        found = store.read(
            "select make_timestamp(max(kept_from_ms) * 1000) from state.kept_from "
            "where table_name = 'gpu_samples'"
        )
        self._until: datetime | None = found.item()

    def has(self, batch: Batch) -> bool:
        """Say whether the batch has readings of that time."""
        if self._until is None or f"raw.{batch.table}" not in OF_READINGS or batch.rows.is_empty():
            return False
        return bool((batch.rows["ts"] < self._until).any())

    def reopened(self, batch: Batch) -> Batch:
        """Return the batch with a new digest, so that it does not count as loaded before."""
        return replace(batch, digest=f"{batch.digest} reopened before {self._until}")


@dataclass(frozen=True)
class _Unrecognised:
    origin: str
    hint: str = ""


@dataclass(frozen=True)
class _Refused:
    found: Found
    error: IngestError


@dataclass(frozen=True)
class _ReadThrough:
    """A file was read to its end; what it did not give, a sentence each."""

    origin: str
    gaps: tuple[str, ...]


IngestEvent = Batch | SkippedFile | _Unrecognised | _Refused | _ReadThrough


def _read_files(name: str, paths: Sequence[Path], options: ReadOptions) -> Iterator[IngestEvent]:
    """Yield the batches to load and the outcome of each file, in the order of the files."""
    for found in find_files.find_files(paths):
        if isinstance(found, SkippedFile):
            yield found
            continue
        plausible = PlausibleTime(options.earliest, is_recorded=True)
        try:
            kind = recognise(found.path) if name == "auto" else sources()[name]
            if kind is None:
                yield _Unrecognised(found.origin, hint_of(files.head(found.path)))
                continue
            source, contents = kind(found.path, options), Contents(kind.name)
            for batch in source.extract():
                checked = plausible.checked(replace(batch, origin=found.origin))
                contents.add(checked)
                yield prepared(checked)
            gaps = [*contents.gaps(source)]
            if name == "auto":
                gaps += yield from _beside(kind, found, options, plausible)
        except IngestError as error:
            is_companion = _is_companion(found, name)
            yield _Unrecognised(found.origin) if is_companion else _refused(found, name, error)
        except MemoryError:
            raise
        except CAUGHT as error:
            yield _Refused(found, unexpected(found.origin, error))
        else:
            yield _ReadThrough(found.origin, tuple(gaps))


def _beside(
    kind: type[Source], found: Found, options: ReadOptions, plausible: PlausibleTime
) -> Generator[Batch, None, list[str]]:
    """Yield the kernel's events in a log of a job: a node's syslog may have one program above all.

    Returns what was not read, a sentence each: also steps in what counts as the kernel's log.
    """
    if kind is KernelLog and JobLog.has_steps(files.head(found.path)):
        return ["kernel-log: steps of a job are in it, too; `goodput ingest job-log` reads them."]
    if kind is not JobLog:
        return []
    try:
        for batch in KernelLog(found.path, options).of_any_log():
            if batch.rows.height or batch.rejects:
                yield prepared(plausible.checked(replace(batch, origin=found.origin)))
    except IngestError as error:
        said = str(error).removeprefix(f"{found.path}: ")
        return [f"kernel-log: its lines of the kernel were not read: {said}"]
    return []


def _refused(found: Found, name: str, error: IngestError) -> _Refused:
    """Return a refused file with its reason, which an empty one has for any format."""
    is_empty = found.path.is_file() and not found.path.stat().st_size
    return _Refused(
        found, IngestError(f"{found.path}: {name}: the file is empty.") if is_empty else error
    )


def _is_companion(found: Found, name: str) -> bool:
    """Say whether a file of a folder or archive usually accompanies the source's own files."""
    is_companion = getattr(sources().get(name), "is_companion", None)
    return (
        is_companion is not None
        and not found.is_named
        and is_companion(found.path, files.head(found.path))
    )


def _size(event: IngestEvent) -> int:
    return max(SIZE_MIN, event.rows.height if isinstance(event, Batch) else 0)

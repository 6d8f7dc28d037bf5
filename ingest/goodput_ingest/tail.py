"""Following the files of a folder as they grow: Inspector logs, job events, job and kernel logs.

Whole new lines are copied to a file of their own and read by the recorded source of the format, so
that both ways share all code after the read. A place in a file is its number on the file system, an
offset and the bytes before it: a renamed file is followed under its old name, a file that was
truncated or written anew begins again. A place is moved only after the store has taken the rows.

After a restart a file's place is looked for by the time of its lines, a little before the latest
one in the store. What is read twice has keys that are known, and changes nothing.
"""

from __future__ import annotations

import fnmatch
import os
import tempfile
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, ClassVar, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from goodput_ingest import files
from goodput_ingest.registry import SOURCES
from goodput_ingest.source import ReadOptions
from goodput_ingest.unexpected import CAUGHT, unexpected
from goodput_queries import catalog
from goodput_queries.errors import IngestError, UnexpectedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from goodput_ingest.source import Source
    from goodput_queries.batch import Batch

CHUNK_BYTES = files.PART_BYTES
POLL_BYTES = 10 * CHUNK_BYTES  # of all files together: a poll returns soon, the next goes on
MARK_BYTES = 256  # before the offset: whether the file is still the one that was read
PROBE_BYTES = 1024 * 1024  # looked at on the way to a place
CONTEXT_BYTES = 4 * 1024 * 1024  # a drain of the Inspector's ring has some 0.5 MB
SNAPSHOT_BYTES = 1024 * 1024
OVERLAP = timedelta(seconds=60)  # lines of one process are in order but for a few seconds
FILES_MAX = 100_000
TRIES_MAX = 5  # a file that fails makes its source wait longer, and so the files beside it
SKIPPED_SHOWN = 3
PACKED = {".gz", ".bz2", ".xz", ".zst", ".zip"}  # what a rotation made of what was read already

Identity = tuple[int, int]


@dataclass(frozen=True)
class Place:
    """How far a file was read: bytes and lines, what stands before, under which name it began.

    changed_ns: when the file was written last, as its file system says.
    context: the last line that later ones cannot be read without (a header of its own).
    is_in_line: in the middle of a line that is too long to be read.
    """

    origin: str
    offset: int = 0
    lines: int = 0
    mark: bytes = b""
    changed_ns: int = 0
    context: bytes = b""
    is_in_line: bool = False


@dataclass(frozen=True)
class Chunk:
    """New bytes of a file, to the end of a line, and the place after them."""

    content: bytes
    after: Place


@dataclass(frozen=True)
class _Failure:
    """How often in a row a file could not be read, its size at the last try, and why."""

    path: Path
    tries: int
    size: int
    reason: str


@dataclass(frozen=True)
class Tail:
    """Files in `folder` (and below) whose name fits `pattern`, in the format that `reads` names.

    cluster, timezone, node: what the files do not say of themselves, as in `goodput ingest`.
    Packed files are passed over; a last line without its end waits for it.
    """

    name: ClassVar[str] = "tail"

    folder: str
    reads: str
    pattern: str = "*"
    cluster: str | None = None
    timezone: str | None = None
    node: str | None = None
    interval_s: float = 5.0
    _places: dict[Identity, Place] = field(default_factory=dict, init=False, repr=False)
    _others: dict[Identity, int] = field(default_factory=dict, init=False, repr=False)
    _failures: dict[Identity, _Failure] = field(default_factory=dict, init=False, repr=False)
    _last_asked: list[Identity] = field(default_factory=list, init=False, repr=False)

    @property
    def origin(self) -> str:
        """Return what is asked; rows bear the file that they are from."""
        return self.folder

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:
        """Yield what was added to any file, file by file in turn; one bad file stops no other."""
        del now  # files bring their own times
        kind, budget, troubles = self._kind(), POLL_BYTES, list[str]()
        waiting = self._in_turn(self._paths())
        while waiting and budget > 0:
            unfinished: dict[Identity, Path] = {}
            for identity, path in waiting.items():
                if budget <= 0:
                    break
                self._last_asked[:] = [identity]
                try:
                    if self._is_skipped(identity, path):
                        continue
                    chunk = self._next(identity, path, kind, reached)
                    if chunk is None:
                        continue
                    place = self._places[identity]
                    try:
                        yield from self._batches(path, kind, place, chunk)
                    except UnexpectedError:
                        raise
                    except IngestError as error:
                        if place.offset and len(chunk.content) < files.HEAD_BYTES:
                            continue  # a few lines of no interest look like no format
                        if not place.offset:
                            raise
                        troubles.append(str(error))
                except OSError as error:
                    troubles.append(f"{path}: cannot be read ({error.strerror}).")
                    continue
                except IngestError as error:
                    troubles.append(self._failed(identity, path, str(error)))
                    continue
                except MemoryError:
                    raise
                except CAUGHT as error:
                    troubles.append(self._failed(identity, path, str(unexpected(path, error))))
                    continue
                self._failures.pop(identity, None)
                self._places[identity] = chunk.after
                budget -= len(chunk.content)
                unfinished[identity] = path
            waiting = unfinished
        if troubles:
            more = f" (and {len(troubles) - 1} more files)" if len(troubles) > 1 else ""
            raise IngestError(f"{troubles[0]}{more}")

    @property
    def skipped(self) -> str | None:
        """Return a sentence on the files that are not read, since they failed again and again."""
        found = [one for one in self._failures.values() if one.tries >= TRIES_MAX]
        if not found:
            return None
        names = ", ".join(str(one.path) for one in found[:SKIPPED_SHOWN])
        more = f" and {len(found) - SKIPPED_SHOWN} more" if len(found) > SKIPPED_SHOWN else ""
        return (
            f"{names}{more}: skipped after {TRIES_MAX} failures, until the file has doubled in "
            f"size; the last was: {found[0].reason}"
        )

    def _failed(self, identity: Identity, path: Path, reason: str) -> str:
        """Count a failure to read a file and return its reason."""
        known = self._failures.get(identity)
        tries = 1 if known is None else known.tries + 1
        self._failures[identity] = _Failure(path, tries, path.stat().st_size, reason)
        return reason

    def _is_skipped(self, identity: Identity, path: Path) -> bool:
        """Say whether a file failed so often, at about this size, that it is not read again.

        One that goes on growing may have what was missing, as a header; it is tried at each
        doubling, so that it cannot slow the files beside it down for long.
        """
        known = self._failures.get(identity)
        return (
            known is not None
            and known.tries >= TRIES_MAX
            and known.size / 2 < path.stat().st_size < known.size * 2
        )

    def probe(self) -> list[str]:
        """Say how many files there are and how many of them are of the format."""
        kind, paths = self._kind(), self._paths()
        fitting = sum(kind.recognises(path, files.head(path)) for path in paths.values())
        return [f"{self.folder}: {fitting} of {len(paths)} files are {self.reads}."]

    def _kind(self) -> type[Source]:
        if self.reads not in SOURCES:
            raise IngestError(f"there is no source {self.reads!r}; known: {', '.join(SOURCES)}.")
        return SOURCES[self.reads]

    def _paths(self) -> dict[Identity, Path]:
        """Return the files that are followed, those renamed out of the pattern included."""
        if not Path(self.folder).is_dir():
            raise IngestError(f"{self.folder}: there is no such folder to follow.")
        found: dict[Identity, Path] = {}
        for path in sorted(Path(self.folder).rglob("*")):
            if path.name.startswith(".") or path.suffix.lower() in PACKED:
                continue
            try:
                stat = path.stat()
            except OSError:  # gone since it was listed
                continue
            identity = (stat.st_dev, stat.st_ino)
            is_chosen = fnmatch.fnmatch(path.name, self.pattern) or identity in self._places
            if is_chosen and path.is_file():
                found.setdefault(identity, path)
            if len(found) > FILES_MAX:
                raise IngestError(f"{self.folder}: more than {FILES_MAX:,} files. Name a pattern.")
        return found

    def _in_turn(self, paths: dict[Identity, Path]) -> dict[Identity, Path]:
        """Return the files, those first that the last poll did not come to; forget what is gone."""
        for known in (self._places, self._others, self._failures):
            for identity in [i for i in known if i not in paths]:
                del known[identity]
        order = list(paths)
        after = order.index(self._last_asked[0]) + 1 if set(self._last_asked) & paths.keys() else 0
        return {identity: paths[identity] for identity in order[after:] + order[:after]}

    def _next(
        self, identity: Identity, path: Path, kind: type[Source], reached: Mapping[str, datetime]
    ) -> Chunk | None:
        """Return the file's next new lines; None where there are none, or the format is another."""
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())
            size = stat.st_size
            place = self._places.get(identity)
            if place is not None and not _is_at(file, place, stat):
                place = Place(place.origin)
            if place is None:
                if size == self._others.get(identity):
                    return None
                head = file.read(files.HEAD_BYTES).removeprefix(files.BYTE_ORDER_MARK)
                if not kind.recognises(path, head):
                    self._others[identity] = size
                    return None
                place = self._place(file, path, kind, size, reached.get(str(path)))
            self._places[identity] = place = replace(place, changed_ns=stat.st_mtime_ns)
            return _chunk(file, place, kind)

    def _place(
        self, file: IO[bytes], path: Path, kind: type[Source], size: int, latest: datetime | None
    ) -> Place:
        """Return where to begin in a file that this process has not read yet."""
        offset = 0
        if latest is not None:
            offset = self._offset(file, path, kind, size, latest - OVERLAP)
        file.seek(max(0, offset - CONTEXT_BYTES))
        before = file.read(offset - file.tell())
        lines = _count_lines(file, offset)
        return Place(
            str(path),
            offset,
            lines,
            mark=before[-MARK_BYTES:],
            context=_context(kind, before) or b"",
        )

    def _offset(
        self, file: IO[bytes], path: Path, kind: type[Source], size: int, goal: datetime
    ) -> int:
        """Return a line's beginning before which all is older than `goal`, halving the file.

        Where a part has no time the search ends, and the file is read from its beginning.
        """
        low, high = 0, size
        while high - low > PROBE_BYTES:
            middle = (low + high) // 2
            file.seek(middle)
            content = file.read(PROBE_BYTES).partition(b"\n")[2]
            latest = self._latest(path, kind, content[: content.rfind(b"\n") + 1])
            if latest is None:
                return 0
            low, high = (middle, high) if latest < goal else (low, middle)
        if low == 0:
            return 0
        file.seek(low)
        return low + file.read(PROBE_BYTES).find(b"\n") + 1

    def _latest(self, path: Path, kind: type[Source], content: bytes) -> datetime | None:
        found: list[datetime] = []
        try:
            for batch in self._read(path, kind, content):
                column = catalog.models("raw")[batch.table].directives.get("time")
                if column is not None and not batch.rows.is_empty():
                    found.append(cast("datetime", batch.rows[column].max()))
        except IngestError:
            return None
        return max(found, default=None)

    def _batches(
        self, path: Path, kind: type[Source], place: Place, chunk: Chunk
    ) -> Iterator[Batch]:
        """Yield the chunk's rows under the file's own name, rejects with its line numbers."""
        context = place.context + b"\n" if place.context else b""
        shift = place.lines - bool(context)
        for batch in self._read(path, kind, context + chunk.content):
            rejects = [
                replace(r, line=None if r.line is None else r.line + shift) for r in batch.rejects
            ]
            yield replace(batch, origin=place.origin, rejects=rejects)

    def _read(self, path: Path, kind: type[Source], content: bytes) -> Iterator[Batch]:
        """Yield what the recorded source makes of some lines of a file."""
        options = ReadOptions(self.cluster, _zone(self.timezone), _changed_at(path), self.node)
        with tempfile.TemporaryDirectory(prefix="goodput-tail-") as folder:
            spooled = Path(folder, path.name)
            spooled.write_bytes(content)
            try:
                yield from kind(spooled, options).extract()
            except IngestError as error:
                raise IngestError(str(error).replace(str(spooled), str(path))) from error


def _chunk(file: IO[bytes], place: Place, kind: type[Source]) -> Chunk | None:
    """Return the whole lines after a place, at most CHUNK_BYTES; None where no line has ended."""
    file.seek(place.offset)
    content = file.read(CHUNK_BYTES)
    taken = content.rfind(b"\n") + 1
    if taken == 0 and len(content) < CHUNK_BYTES:
        return None
    is_cut = taken == 0
    content = content if is_cut else content[:taken]
    after = replace(
        place,
        offset=place.offset + len(content),
        lines=place.lines + content.count(b"\n"),
        mark=(place.mark + content)[-MARK_BYTES:],
        context=_context(kind, content) or place.context,
        is_in_line=is_cut,
    )
    if place.is_in_line:  # its beginning was read and set aside
        content = b"\n" if is_cut else b"\n" + content.partition(b"\n")[2]
    return Chunk(content, after)


def _is_at(file: IO[bytes], place: Place, stat: os.stat_result) -> bool:
    """Say whether the file still has before the place what was read there.

    A small file of the same length that was written since is one that is written anew at intervals
    (the Inspector's Prometheus mode), whose values did not change.
    """
    if stat.st_size < place.offset:
        return False
    if stat.st_size == place.offset <= SNAPSHOT_BYTES and stat.st_mtime_ns != place.changed_ns:
        return False
    file.seek(place.offset - len(place.mark))
    return file.read(len(place.mark)) == place.mark


def _context(kind: type[Source], content: bytes) -> bytes | None:
    """Return the last line that later ones cannot be read without, where the format has such."""
    find = cast("Callable[[bytes], bytes | None] | None", getattr(kind, "context", None))
    return find(content) if find else None


def _count_lines(file: IO[bytes], until: int) -> int:
    file.seek(0)
    lines = 0
    while (rest := until - file.tell()) > 0 and (part := file.read(min(rest, PROBE_BYTES))):
        lines += part.count(b"\n")
    return lines


def _changed_at(path: Path) -> datetime | None:
    """Return when the file was written last, for formats whose content has no time."""
    try:
        seconds = path.stat().st_mtime
    except OSError:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _zone(name: str | None) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        raise IngestError(
            f"there is no time zone {name!r}; expected one as Europe/Berlin."
        ) from None

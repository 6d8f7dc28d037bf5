"""Tails the growing files of a folder: Inspector logs, job events, job and kernel logs.

The recorded source of the format parses whole new lines, so that live and recorded ingest share
their parser. The place in a file is its inode, an offset and the bytes before it. The place moves
only after the store has committed the rows.

A log is everything written under one name: rotated files are read to their end, oldest first, then
the current file; the parser's state is kept across files. The copy of a `copytruncate` rotation
takes over the place of its file. A file that was truncated or rewritten otherwise is read from its
start, and a removed file is dropped.

After a restart a log with a stateful parser is read again from its start. In other logs reading
starts at a line a little before the latest time in the store. Rows that are read twice have known
keys and change nothing.
"""

import copy
import hashlib
import os
import tempfile
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, ClassVar, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from goodput_ingest.formats import files
from goodput_ingest.live.tail_contents import FollowedContents, as_settings, findings
from goodput_ingest.live.tail_logs import Identity, Log, changed_at, logs_of, size_of
from goodput_ingest.live.tail_places import (
    Chunk,
    Place,
    context_of,
    count_lines,
    encoding_of,
    head_of,
    is_at,
    next_chunk,
)
from goodput_ingest.run.unexpected import CAUGHT, unexpected
from goodput_ingest.source import ContinuedSource, ReadOptions, Source
from goodput_ingest.sources.registry import sources
from goodput_queries.catalog import models
from goodput_queries.errors import IngestError, UnexpectedError
from goodput_queries.evidence.batch import Batch

CHUNK_BYTES = files.PART_BYTES
POLL_BYTES = 10 * CHUNK_BYTES  # of all files together: a poll returns soon, the next goes on
PROBE_BYTES = 1024 * 1024  # looked at on the way to a place
CONTEXT_BYTES = 4 * 1024 * 1024  # a drain of the Inspector's ring has some 0.5 MB
MARK_BYTES = 256  # before the offset: whether the file is still the one that was read
OVERLAP = timedelta(seconds=60)  # lines of one process are in order but for a few seconds
TRIES_MAX = 5  # a failing file backs off its source, and so the other files of the folder
SKIPPED_SHOWN = 3
READERS_MAX = 2_000  # kept with what their lines said; one more and the longest unused goes


@dataclass(frozen=True)
class _Failure:
    """How often in a row a log could not be read, its size at the last try, and why."""

    tries: int
    size: int
    reason: str


@dataclass(frozen=True)
class Tail:
    """Files in `folder` (and below) whose name fits `pattern`, in the format that `reads` names.

    cluster, timezone, node: what the files do not say of themselves, as in `goodput ingest`.
    Packed files are passed over; a last line without its end waits for it. Names that a rotation
    gives (`train.log.1`, `train.log-20260820`) fit where the name before it fits.
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
    _failures: dict[str, _Failure] = field(default_factory=dict, init=False, repr=False)
    _readers: dict[str, ContinuedSource] = field(default_factory=dict, init=False, repr=False)
    _contents: FollowedContents = field(default_factory=FollowedContents, init=False, repr=False)
    _last_asked: list[str] = field(default_factory=list, init=False, repr=False)
    _polls: list[datetime] = field(default_factory=list, init=False, repr=False)

    @property
    def origin(self) -> str:
        """Return the folder and pattern; rows have their file as origin."""
        return self.folder

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:
        """Yield the new lines of all logs in turn; a failing file does not stop the others."""
        self._polls[:] = [*self._polls[-1:], now]  # files bring their own times, but for some
        kind, budget, troubles = self._kind(), POLL_BYTES, list[str]()
        waiting = self._in_turn(logs_of(self.folder, self.pattern, self._places))
        while waiting and budget > 0:
            unfinished: dict[str, Log] = {}
            for origin, log in waiting.items():
                if budget <= 0:
                    break
                self._last_asked[:] = [origin]
                try:
                    if self._is_skipped(origin, log):
                        continue
                    taken = yield from self._more(origin, log, kind, reached)
                except OSError as error:
                    troubles.append(f"{origin}: cannot be read ({error.strerror}).")
                except IngestError as error:
                    troubles.append(self._failed(origin, log, as_settings(str(error))))
                except MemoryError:
                    raise
                except CAUGHT as error:
                    reason = str(unexpected(Path(origin), error))
                    troubles.append(self._failed(origin, log, reason))
                else:
                    budget -= taken
                    if taken:
                        self._failures.pop(origin, None)
                        unfinished[origin] = log
            waiting = unfinished
        if troubles:
            more = f" (and {len(troubles) - 1} more files)" if len(troubles) > 1 else ""
            raise IngestError(f"{troubles[0]}{more}")

    @property
    def skipped(self) -> str | None:
        """Return a sentence on files that are skipped after failures, else on what logs lack."""
        found = {o: one for o, one in self._failures.items() if one.tries >= TRIES_MAX}
        if not found:
            return self._contents.gaps(self._readers)
        names = ", ".join(list(found)[:SKIPPED_SHOWN])
        more = f" and {len(found) - SKIPPED_SHOWN} more" if len(found) > SKIPPED_SHOWN else ""
        return (
            f"{names}{more}: skipped after {TRIES_MAX} failures, until the file has doubled in "
            f"size; the last was: {next(iter(found.values())).reason}"
        )

    def _failed(self, origin: str, log: Log, reason: str) -> str:
        """Count a failure to read a log and return its reason."""
        known = self._failures.get(origin)
        tries = 1 if known is None else known.tries + 1
        self._failures[origin] = _Failure(tries, size_of(log), reason)
        return reason

    def _is_skipped(self, origin: str, log: Log) -> bool:
        """Say whether a log failed so often, at about this size, that it is not read again.

        One that goes on growing may have what was missing, as a header; it is tried at each
        doubling, so that it does not delay the other files for long.
        """
        known = self._failures.get(origin)
        return (
            known is not None
            and known.tries >= TRIES_MAX
            and known.size / 2 < size_of(log) < known.size * 2
        )

    def probe(self) -> list[str]:
        """Say how many files there are and are of the format, and what the first ones lack."""
        kind = self._kind()
        logs = logs_of(self.folder, self.pattern, self._places)
        paths = [path for log in logs.values() for path in log.values()]
        fitting = sum(kind.recognises(path, files.head(path)) for path in paths)
        options = {path: self._options(path) for path in paths}
        said = f"{self.folder}: {fitting} of {len(paths)} files are {self.reads}."
        return [said, *findings(paths, kind, options)]

    def _kind(self) -> type[Source]:
        if self.reads not in sources():
            raise IngestError(f"there is no source {self.reads!r}; known: {', '.join(sources())}.")
        return sources()[self.reads]

    def _in_turn(self, logs: dict[str, Log]) -> dict[str, Log]:
        """Return the logs, those first that the last poll did not reach; drops removed logs."""
        present = {identity for log in logs.values() for identity in log}
        for known in (self._places, self._others):
            for identity in [i for i in known if i not in present]:
                del known[identity]
        for of_logs in (self._readers, self._failures):
            for origin in [o for o in of_logs if o not in logs]:
                del of_logs[origin]
        self._contents.keep(logs)
        order = list(logs)
        after = order.index(self._last_asked[0]) + 1 if set(self._last_asked) & logs.keys() else 0
        return {origin: logs[origin] for origin in order[after:] + order[:after]}

    def _more(
        self, origin: str, log: Log, kind: type[Source], reached: Mapping[str, datetime]
    ) -> Generator[Batch, None, int]:
        """Yield the rows of a log's next lines; return how many bytes they have."""
        for identity in log:
            if (chunk := self._next(origin, log, identity, kind, reached)) is not None:
                break
        else:
            return 0
        place, path = self._places[identity], log[identity]
        if _needs_beginning(kind) and place.offset and origin not in self._readers:
            for one in log:  # what the lines before said was let go of
                self._places.pop(one, None)
            return (yield from self._more(origin, log, kind, reached))
        reader = self._reader(origin, path, kind)
        try:
            yield from self._batches(path, kind, place, chunk, reader)
        except UnexpectedError:
            raise
        except IngestError:
            if reader is None and place.offset:
                if len(chunk.content) < files.HEAD_BYTES:
                    return 0  # a few lines of no interest look like no format
                self._places[identity] = chunk.after
            raise
        self._places[identity] = chunk.after
        if reader is not None:
            self._readers.pop(origin, None)
            self._readers[origin] = reader
            if len(self._readers) > READERS_MAX:
                del self._readers[next(iter(self._readers))]
        return len(chunk.content)

    def _reader(self, origin: str, path: Path, kind: type[Source]) -> ContinuedSource | None:
        """Return a copy of the log's parser, since the lines may have to be parsed again."""
        if (known := self._readers.get(origin)) is not None:
            return copy.deepcopy(known)
        if not _is_continued(kind):
            return None
        return cast("ContinuedSource", kind(Path(origin), self._options(path)))

    def _next(
        self,
        origin: str,
        log: Log,
        identity: Identity,
        kind: type[Source],
        reached: Mapping[str, datetime],
    ) -> Chunk | None:
        """Return the file's next new lines; None where there are none, or the format is another."""
        path = log[identity]
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())
            size = stat.st_size
            place = self._places.get(identity)
            may_be_snapshot = not _is_continued(kind)
            if place is not None and not is_at(file, place, stat, may_be_snapshot=may_be_snapshot):
                if len(log) == 1:  # nothing was rotated: what it said before is of no account
                    self._readers.pop(origin, None)
                place = Place(origin)
            if place is None and str(path) != origin:
                place = self._place_of_original(file, stat, log)
            if place is None:
                if size == self._others.get(identity):
                    return None
                head = head_of(file)
                if origin not in self._readers and not kind.recognises(path, head):
                    self._others[identity] = size
                    return None
                place = self._place(file, path, kind, size, origin, reached.get(origin))
            self._places[identity] = place = replace(place, changed_ns=stat.st_mtime_ns)
            return next_chunk(file, place, kind, CHUNK_BYTES)

    def _place_of_original(self, file: IO[bytes], stat: os.stat_result, log: Log) -> Place | None:
        """Return the place in the file of which this one is a copy that a rotation made."""
        known = (self._places.get(identity) for identity in log)
        return next(
            (
                place
                for place in known
                if place is not None
                and place.offset
                and is_at(file, place, stat, may_be_snapshot=False)
            ),
            None,
        )

    def _place(
        self,
        file: IO[bytes],
        path: Path,
        kind: type[Source],
        size: int,
        origin: str,
        latest: datetime | None,
    ) -> Place:
        """Return the place to start in a file that this process has not read yet."""
        offset = 0
        if latest is not None and not _needs_beginning(kind) and not encoding_of(file):
            offset = self._offset(file, path, kind, size, latest - OVERLAP)
        file.seek(max(0, offset - CONTEXT_BYTES))
        before = file.read(offset - file.tell())
        return Place(
            origin,
            offset,
            count_lines(file, offset),
            mark=before[-MARK_BYTES:],
            context=context_of(kind, before) or b"",
        )

    def _offset(
        self, file: IO[bytes], path: Path, kind: type[Source], size: int, goal: datetime
    ) -> int:
        """Return the start of a line before which all lines are older than `goal` (bisection).

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
                column = models.of_layer("raw")[batch.table].time
                if column is not None and not batch.rows.is_empty():
                    found.append(cast("datetime", batch.rows[column].max()))
        except IngestError:
            return None
        return max(found, default=None)

    def _batches(
        self,
        path: Path,
        kind: type[Source],
        place: Place,
        chunk: Chunk,
        reader: ContinuedSource | None,
    ) -> Iterator[Batch]:
        """Yield the chunk's rows under the log's own name, rejects with its line numbers."""
        if reader is not None:
            content = chunk.content.removesuffix(b"\n") + b"\n"
            if place.lines == 0:
                content = content.removeprefix(files.BYTE_ORDER_MARK)
            digest = hashlib.sha256(content).hexdigest()[: files.DIGEST_CHARS]
            part = files.Part(place.lines + 1, content, digest, written=self._written())
            for batch in reader.read(part):
                self._contents.add(place.origin, kind.name, batch)
                yield replace(batch, origin=place.origin)
            return
        context = place.context + b"\n" if place.context else b""
        shift = place.lines - bool(context)
        for batch in self._read(path, kind, context + chunk.content):
            rejects = [
                replace(r, line=None if r.line is None else r.line + shift) for r in batch.rejects
            ]
            self._contents.add(place.origin, kind.name, replace(batch, rejects=rejects))
            yield replace(batch, origin=place.origin, rejects=rejects)

    def _written(self) -> tuple[datetime, datetime] | None:
        """Return between which polls new lines were written; None at the first poll."""
        if len(self._polls) < 2:
            return None
        return self._polls[0], self._polls[1]

    def _options(self, path: Path) -> ReadOptions:
        return ReadOptions(self.cluster, _zone(self.timezone), changed_at(path), self.node)

    def _read(self, path: Path, kind: type[Source], content: bytes) -> Iterator[Batch]:
        """Yield the recorded source's rows of some lines of a file."""
        with tempfile.TemporaryDirectory(prefix="goodput-tail-") as folder:
            spooled = Path(folder, path.name)
            spooled.write_bytes(content)
            try:
                yield from kind(spooled, self._options(path)).extract()
            except IngestError as error:
                raise IngestError(str(error).replace(str(spooled), str(path))) from error


def _is_continued(kind: type[Source]) -> bool:
    return hasattr(kind, "needs_beginning")


def _needs_beginning(kind: type[Source]) -> bool:
    return bool(getattr(kind, "needs_beginning", False))


def _zone(name: str | None) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        raise IngestError(
            f"there is no time zone {name!r}; expected one as Europe/Berlin."
        ) from None

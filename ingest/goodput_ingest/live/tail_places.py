"""The position in a tailed file, and its next whole lines."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import IO, cast

from goodput_ingest.formats import files
from goodput_ingest.source import Source

MARK_BYTES = 256  # before the offset: whether the file is still the one that was read
SNAPSHOT_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Place:
    """The position in a file: bytes and lines, the bytes before it, and the log's name.

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


def next_chunk(file: IO[bytes], place: Place, kind: type[Source], most_bytes: int) -> Chunk | None:
    """Return the whole lines after a place, at most so many bytes; None where no line has ended."""
    file.seek(place.offset)
    content = file.read(most_bytes)
    taken = content.rfind(b"\n") + 1
    if taken == 0 and len(content) < most_bytes:
        return None
    is_cut = taken == 0
    content = content if is_cut else content[:taken]
    after = replace(
        place,
        offset=place.offset + len(content),
        lines=place.lines + content.count(b"\n"),
        mark=(place.mark + content)[-MARK_BYTES:],
        context=context_of(kind, content) or place.context,
        is_in_line=is_cut,
    )
    if place.is_in_line:  # its beginning was read and rejected
        content = b"\n" if is_cut else b"\n" + content.partition(b"\n")[2]
    return Chunk(content, after)


def is_at(file: IO[bytes], place: Place, stat: os.stat_result, *, may_be_snapshot: bool) -> bool:
    """Say whether the bytes before the place are unchanged.

    A small file of the same length that was written since may be one that is rewritten at
    intervals (the Inspector's Prometheus mode), whose values did not change.
    """
    if stat.st_size < place.offset:
        return False
    is_small_and_at_its_end = stat.st_size == place.offset <= SNAPSHOT_BYTES
    if may_be_snapshot and is_small_and_at_its_end and stat.st_mtime_ns != place.changed_ns:
        return False
    file.seek(place.offset - len(place.mark))
    return file.read(len(place.mark)) == place.mark


def context_of(kind: type[Source], content: bytes) -> bytes | None:
    """Return the last line that the parser needs for later ones, where the format has such."""
    find = cast("Callable[[bytes], bytes | None] | None", getattr(kind, "context", None))
    return find(content) if find else None


def count_lines(file: IO[bytes], until: int) -> int:
    """Return how many lines end before an offset."""
    file.seek(0)
    lines = 0
    while (rest := until - file.tell()) > 0 and (part := file.read(min(rest, files.CHUNK_BYTES))):
        lines += part.count(b"\n")
    return lines

"""The position in a tailed file, and its next whole lines, in UTF-8."""

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
    encoding = encoding_of(file)
    file.seek(place.offset)
    raw = file.read(most_bytes)
    taken = _end_of_lines(raw, encoding)
    if taken == 0 and len(raw) < most_bytes:
        return None
    is_cut = taken == 0
    raw = raw if is_cut else raw[:taken]
    content = raw.decode(encoding, "replace").encode() if encoding else raw
    after = replace(
        place,
        offset=place.offset + len(raw),
        lines=place.lines + content.count(b"\n"),
        mark=(place.mark + raw)[-MARK_BYTES:],
        context=context_of(kind, content) or place.context,
        is_in_line=is_cut,
    )
    if place.is_in_line:  # its beginning was read and rejected
        content = b"\n" if is_cut else b"\n" + content.partition(b"\n")[2]
    return Chunk(content, after)


def encoding_of(file: IO[bytes]) -> str:
    """Return the encoding of a file whose mark says that it is UTF-16; else ''."""
    file.seek(0)
    return files.UTF_16.get(file.read(2), "")


def head_of(file: IO[bytes]) -> bytes:
    """Return the first bytes of a file, without its mark."""
    encoding = encoding_of(file)
    file.seek(0)
    head = file.read(files.HEAD_BYTES)
    text = head.decode(encoding, "replace").encode() if encoding else head
    return text.removeprefix(files.BYTE_ORDER_MARK)


def _end_of_lines(raw: bytes, encoding: str) -> int:
    """Return the offset after the last line that has ended."""
    newline = "\n".encode(encoding or "utf-8")
    at = raw.rfind(newline)
    while at % len(newline) and at >= 0:  # halves of two characters
        at = raw.rfind(newline, 0, at + len(newline) - 1)
    return 0 if at < 0 else at + len(newline)


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

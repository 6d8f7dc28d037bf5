"""Reading files a part at a time: plain or gzip, long lines capped, each part with a digest."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import IO, TYPE_CHECKING, cast

from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_MAX_BYTES = 16 * 1024 * 1024  # a verbose Inspector record of 64 channels has 13 KB
PART_BYTES = 24 * 1024 * 1024  # larger ones are no faster, smaller ones cost commits
CHUNK_BYTES = 1024 * 1024
HEAD_BYTES = 64 * 1024
DIGEST_CHARS = 32
BROKEN_OFF = (EOFError, OSError, zlib.error)  # what a cut or damaged gzip stream raises


@dataclass(frozen=True)
class Part:
    """Some consecutive lines of a file: number of the first (from 1), the lines, their digest.

    raw_lines: the lines as bytes, without their ends.
    damage: why the reading broke off after these lines; empty where it did not.
    """

    first_line: int
    raw_lines: list[bytes]
    digest: str
    damage: str = ""

    @cached_property
    def lines(self) -> list[str]:
        """The lines as text; undecodable bytes are replaced."""
        if not self.raw_lines:
            return []
        text = b"\n".join(self.raw_lines).decode("utf-8", errors="replace")
        lines = text.split("\n")
        return [line.rstrip("\r") for line in lines] if "\r" in text else lines


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed; raises IngestError where it cannot be read."""
    try:
        file = path.open("rb")
        magic = file.read(2)
        file.seek(0)
    except OSError as error:
        raise IngestError(f"{path}: cannot be read ({error.strerror}).") from error
    if magic != GZIP_MAGIC:
        return file
    file.close()  # gzip closes only what it has opened itself
    return cast("IO[bytes]", gzip.open(path))


def head(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed; of a damaged one, what can be read."""
    found = b""
    try:
        with open_bytes(path) as file:
            while len(found) < HEAD_BYTES and (chunk := _read(file, HEAD_BYTES - len(found))):
                found += chunk
    except (*BROKEN_OFF, IngestError):
        pass
    return found.removeprefix(BYTE_ORDER_MARK)


def digest(part: Part, *meaning: object) -> str:
    """Return the part's digest with all that decides what its lines mean (zone, header, ...)."""
    text = "\x1f".join([part.digest, part.damage, *map(str, meaning)])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:DIGEST_CHARS]


def parts(
    path: Path, *, lines_per_part: int = 50_000, bytes_per_part: int = PART_BYTES
) -> Iterator[Part]:
    """Yield the lines of a text file in parts; undecodable bytes are replaced, not fatal.

    A part is the same bytes whenever the file has only grown, so that its digest lets a repeated
    ingest skip it. A gzip stream that was cut ends the reading at the cut; what came before is
    kept, the line that was cut included, and the last part says so.
    """
    held: list[bytes] = []
    first, size, damage = 1, 0, ""
    with open_bytes(path) as file:
        reader = _lines(file)
        while True:
            try:
                lines = next(reader, None)
            except _BrokenOffError as error:
                damage = str(error)
                lines = [error.rest] if error.rest else None
                reader = iter(())
            if lines is None:
                break
            while taken := _filling(lines, lines_per_part - len(held), bytes_per_part - size):
                yield _part(first, held + lines[:taken], "")
                first, size = first + len(held) + taken, 0
                held, lines = [], lines[taken:]
            held += lines
            size += sum(map(len, lines))
    if held or damage:
        yield _part(first, held, damage)


def _filling(lines: list[bytes], lines_max: int, bytes_max: int) -> int:
    """Return how many of the lines fill a part up; 0: it has room for all of them and more."""
    if len(lines) < lines_max and sum(map(len, lines)) < bytes_max:
        return 0
    sizes = accumulate(map(len, lines[:lines_max]))
    return next((n for n, size in enumerate(sizes, 1) if size >= bytes_max), lines_max)


class _BrokenOffError(Exception):
    """The stream cannot be read further; `rest` is the line that was cut."""

    def __init__(self, reason: str, rest: bytes) -> None:
        super().__init__(reason)
        self.rest = rest


def _part(first: int, lines: list[bytes], damage: str) -> Part:
    digest = hashlib.sha256(b"\n".join(lines)).hexdigest()[:DIGEST_CHARS]
    if first == 1 and lines:
        lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
    return Part(first, lines, digest, damage)


def _lines(file: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield lines without their end, those of a chunk together.

    Of a line over LINE_MAX_BYTES only the beginning is kept.
    """
    rest = b""
    is_skipping = False
    while True:
        try:
            chunk = _read(file, CHUNK_BYTES)
        except BROKEN_OFF as error:
            reason = f"the file is cut or damaged here: {error}"
            raise _BrokenOffError(reason, rest) from error
        if not chunk:
            break
        *whole, last = chunk.split(b"\n")
        if whole:
            whole[0] = rest if is_skipping else (rest + whole[0])[:LINE_MAX_BYTES]
            yield whole
            rest, is_skipping = last, False
        elif not is_skipping:
            rest += last
        if len(rest) > LINE_MAX_BYTES:
            rest, is_skipping = rest[:LINE_MAX_BYTES], True
    if rest:
        yield [rest]


def _read(file: IO[bytes], size: int) -> bytes:
    """Read what one go gives: unlike `read`, nothing is lost when the next go fails."""
    return cast("bytes", file.read1(size))  # type: ignore[attr-defined]

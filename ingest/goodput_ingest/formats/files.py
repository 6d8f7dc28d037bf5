"""Reads files in parts: plain or packed, long lines capped, each part with a digest.

Bytes that are not UTF-8 are read as Windows-1252, so that names of it stay apart.
"""

import codecs
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, cast

from goodput_ingest.formats import packed
from goodput_queries.errors import IngestError, stated
from goodput_queries.evidence.batch import CONTENT_CHARS, Reject

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16 = {
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}  # `>` of Windows PowerShell
LINE_MAX_BYTES = 16 * 1024 * 1024  # a verbose Inspector record of 64 channels has 13 KB
PART_BYTES = 24 * 1024 * 1024  # larger ones are no faster, smaller ones cost commits
CHUNK_BYTES = 1024 * 1024
HEAD_BYTES = 64 * 1024
DIGEST_CHARS = 32
BROKEN_OFF = packed.BROKEN_OFF
WINDOWS = "windows-1252"  # handler of bytes that are not UTF-8


def _of_windows(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(WINDOWS, _of_windows)


@dataclass(frozen=True)
class Part:
    """Some consecutive lines of a file: number of the first (from 1), the lines, their digest.

    data: the lines as they stand in the file, each with its end, the last one too.
    damage: why the reading broke off after these lines; empty where it did not.
    written: between which moments they were written, naive UTC; None: not known.
    """

    first_line: int
    data: bytes
    digest: str
    damage: str = ""
    written: tuple[datetime, datetime] | None = None

    @cached_property
    def raw_lines(self) -> list[bytes]:
        """The lines as bytes, without their ends."""
        return self.data.split(b"\n")[:-1]

    @cached_property
    def lines(self) -> list[str]:
        """The lines as text; undecodable bytes are replaced."""
        if not self.data:
            return []
        lines = self.data[:-1].decode("utf-8", WINDOWS).split("\n")
        return [line.rstrip("\r") for line in lines] if b"\r" in self.data else lines

    @property
    def cut(self) -> list[Reject]:
        """Why the reading broke off after these lines, as a reject; none where it did not."""
        end = self.first_line + self.data.count(b"\n")
        return [Reject(end, self.damage)] if self.damage else []

    def line(self, number: int) -> str:
        """Return one of the lines, from 0, without making text of all."""
        return self.raw_lines[number].decode("utf-8", WINDOWS).rstrip("\r")


def with_ends(lines: Iterable[bytes]) -> bytes:
    """Return lines as a part has them."""
    return b"".join(line + b"\n" for line in lines)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed; raises IngestError where it cannot be read.

    Text in UTF-16 with its mark is given in UTF-8, lines that end with CR alone with LF.
    """
    with stated(IngestError, f"{path}: cannot be read"):
        file = path.open("rb")
        unpacked = packed.opener(file.read(packed.MAGIC_BYTES))
        file.seek(0)
    if unpacked is None:
        return _with_newlines(_as_utf8(file))
    file.close()  # each closes only what it has opened itself
    return _with_newlines(_as_utf8(unpacked(path)))


def are_of_cr(text: bytes) -> bool:
    """Say whether the lines of a text end with CR alone, as old Mac OS and some devices write.

    Where there is a LF, a CR is part of a line: logs have progress bars.
    """
    return b"\r" in text and b"\n" not in text and b"\x00" not in text


class _Converted(RawIOBase):
    """A file of which each piece is converted; convert: the piece, and whether the file ends."""

    def __init__(self, file: BufferedReader, convert: Callable[[bytes, bool], bytes]) -> None:
        self._file = file
        self._convert = convert
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            piece = self._file.read1(len(buffer))
            self._rest = self._convert(piece, not piece)
            if not piece:
                break
        data, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _as_utf8(file: BufferedReader) -> BufferedReader:
    """Return the file in UTF-8, where it begins as UTF-16 does."""
    try:
        encoding = UTF_16.get(file.peek(2)[:2])
    except BROKEN_OFF:
        return file  # whoever reads on says so
    if encoding is None:
        return file
    file.read(2)
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return BufferedReader(
        _Converted(file, lambda piece, is_end: decoder.decode(piece, is_end).encode())
    )


def _with_newlines(file: BufferedReader) -> IO[bytes]:
    """Return the file, with a LF for each CR where these end its lines."""
    try:
        if not file.seekable() or b"\n" in file.peek(1):  # it was UTF-16, or the usual case
            return file
        head = file.read(HEAD_BYTES)
    except BROKEN_OFF:
        head = b""  # whoever reads on says so
    file.seek(0)
    if not are_of_cr(head):
        return file
    return BufferedReader(_Converted(file, lambda piece, _: piece.replace(b"\r", b"\n")))


def head(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed; of a damaged one, its readable start."""
    found = b""
    try:
        with open_bytes(path) as file:
            while len(found) < HEAD_BYTES and (chunk := _read(file, HEAD_BYTES - len(found))):
                found += chunk
    except (*BROKEN_OFF, IngestError):
        pass
    return found.removeprefix(BYTE_ORDER_MARK)


def digest(part: Part, *meaning: object) -> str:
    """Return the part's digest with all that its rows depend on (zone, header, ...)."""
    return digest_of(f"{part.digest}{part.damage}", *meaning)


def digest_of(content: str, *meaning: object) -> str:
    """Return a digest of content, or of its digest, with all that its rows depend on.

    It begins with a digest of the content alone: the same read with other options is found.
    """
    texts = ("\x1f".join([content, *map(str, said)]) for said in ((), meaning))
    alone, whole = (hashlib.sha256(one.encode("utf-8", "replace")).hexdigest() for one in texts)
    return f"{alone[:CONTENT_CHARS]}-{whole}"[:DIGEST_CHARS]


def parts(
    path: Path, *, lines_per_part: int = 50_000, bytes_per_part: int = PART_BYTES
) -> Iterator[Part]:
    """Yield the lines of a text file in parts; undecodable bytes are replaced, not fatal.

    A part is the same bytes whenever the file has only grown, so that its digest lets a repeated
    ingest skip it. A packed stream that was cut ends the reading at the cut; what came before is
    kept, the line that was cut included, and the last part says so.
    """
    held: list[bytes] = []
    first, count, size, damage = 1, 0, 0, ""
    with open_bytes(path) as file:
        reader = _pieces(file)
        while True:
            try:
                piece = next(reader, b"")
            except _BrokenOffError as error:
                damage = str(error)
                piece = error.rest + b"\n" if error.rest else b""
                reader = iter(())
            if not piece:
                break
            lines = piece.count(b"\n")
            while count + lines >= lines_per_part or size + len(piece) - lines >= bytes_per_part:
                taken, end = _filling(piece, lines_per_part - count, bytes_per_part - size)
                yield _part(first, [*held, piece[:end]], "")
                first, count, size = first + count + taken, 0, 0
                held, piece, lines = [], piece[end:], lines - taken
            held.append(piece)
            count, size = count + lines, size + len(piece) - lines
    if count or damage:
        yield _part(first, held, damage)


def _filling(piece: bytes, lines_max: int, bytes_max: int) -> tuple[int, int]:
    """Return how many of a piece's lines fill a part up, and where they end."""
    number = end = 0
    for number, line in enumerate(piece.split(b"\n")[:-1], 1):
        end += len(line) + 1
        if number == lines_max or end - number >= bytes_max:
            break
    return number, end


class _BrokenOffError(Exception):
    """The stream cannot be read further; `rest` is the truncated line."""

    def __init__(self, reason: str, rest: bytes) -> None:
        super().__init__(reason)
        self.rest = rest


def _part(first: int, pieces: list[bytes], damage: str) -> Part:
    data = b"".join(pieces)
    digest = hashlib.sha256(memoryview(data)[:-1]).hexdigest()[:DIGEST_CHARS]
    if first == 1:
        data = data.removeprefix(BYTE_ORDER_MARK)
    return Part(first, data, digest, damage)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield lines with their ends, those of a chunk together; the last one gets an end.

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
        end = chunk.rfind(b"\n") + 1
        if end:
            # a chunk is shorter than a line may be: only what began before it can be too long
            room = 0 if is_skipping else LINE_MAX_BYTES - len(rest)
            first = chunk.index(b"\n")
            yield rest + (chunk[:end] if first <= room else chunk[:room] + chunk[first:end])
            rest, is_skipping = chunk[end:], False
        elif not is_skipping:
            rest += chunk
        if len(rest) > LINE_MAX_BYTES:
            rest, is_skipping = rest[:LINE_MAX_BYTES], True
    if rest:
        yield rest + b"\n"


def _read(file: IO[bytes], size: int) -> bytes:
    """Return the bytes of one read call: unlike `read`, a later failure loses nothing."""
    return cast("bytes", file.read1(size))  # type: ignore[attr-defined]

"""Reading files a part at a time: plain or gzip, long lines capped, each part with a digest."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, cast

from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"
LINE_MAX_BYTES = 16 * 1024 * 1024  # a verbose Inspector record of 64 channels has 13 KB
HEAD_BYTES = 64 * 1024


@dataclass(frozen=True)
class Part:
    """Some consecutive lines of a file: number of the first (from 1), the lines, their digest."""

    first_line: int
    lines: list[str]
    digest: str


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed; raises IngestError where it cannot be read."""
    try:
        file = path.open("rb")
        magic = file.read(2)
        file.seek(0)
    except OSError as error:
        raise IngestError(f"{path}: cannot be read ({error.strerror}).") from error
    return cast("IO[bytes]", gzip.open(file)) if magic == GZIP_MAGIC else file


def head(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed; empty where it is no file or cut short."""
    try:
        with open_bytes(path) as file:
            return file.read(HEAD_BYTES)
    except (EOFError, OSError, IngestError):
        return b""


def parts(path: Path, *, lines_per_part: int = 50_000) -> Iterator[Part]:
    """Yield the lines of a text file in parts; undecodable bytes are replaced, not fatal.

    A part is the same bytes whenever the file has only grown, so that its digest lets a repeated
    ingest skip it. A gzip stream that was cut ends the reading at the cut; what came before is kept.
    """
    digest = hashlib.blake2b(digest_size=16)
    lines: list[str] = []
    first = number = 1
    with open_bytes(path) as file:
        while True:
            try:
                raw = file.readline(LINE_MAX_BYTES)
            except (EOFError, OSError):
                break
            if not raw:
                break
            digest.update(raw)
            lines.append(raw.decode("utf-8", errors="replace").rstrip("\r\n"))
            number += 1
            if len(lines) >= lines_per_part:
                yield Part(first, lines, digest.hexdigest())
                digest, lines, first = hashlib.blake2b(digest_size=16), [], number
    if lines:
        yield Part(first, lines, digest.hexdigest())

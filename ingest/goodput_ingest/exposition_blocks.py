"""Files of appended scrapes, cut between scrapes: each block has whole ones and is read at once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, cast

from goodput_ingest import files
from goodput_ingest.exposition import MARK
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOCK_BYTES: Final = 96 * 1024 * 1024  # some 400,000 lines; they fill a row group of DuckDB
CHUNK_BYTES: Final = 8 * 1024 * 1024
BLOCK_MAX_BYTES: Final = 256 * 1024 * 1024  # a scrape of 40,000 GPUs
BOUNDARY: Final = b"\n" + MARK.encode()


@dataclass(frozen=True)
class Block:
    """Consecutive lines: the number of the first (from 1), the bytes.

    content: digest of the bytes
    damage: why the reading broke off after these lines; empty where it did not.
    """

    first_line: int
    data: bytes
    content: str
    damage: str = ""

    def digest(self, *meaning: object) -> str:
        """Return a digest of the block with all that decides what its lines mean."""
        text = "\x1f".join([self.content, self.damage, *map(str, meaning)])
        return hashlib.sha256(text.encode()).hexdigest()[: files.DIGEST_CHARS]


def blocks(path: Path) -> Iterator[Block]:
    """Yield the file in blocks that begin with a mark `# scraped_at`, but for the first.

    One reading of a GPU has many lines, which must not come apart. So a file without marks is one
    block, and raises IngestError where it is larger than BLOCK_MAX_BYTES. A block is the same
    bytes whenever the file has only grown, but for the last.
    """
    rest, first_line, damage, is_end = b"", 1, "", False
    with files.open_bytes(path) as file:
        while not is_end:
            rest, damage, is_end = _filled(file, rest, max(BLOCK_BYTES, len(rest)) + CHUNK_BYTES)
            while not is_end and (end := _end(rest)):
                block = rest[:end]
                yield _block(block, first_line)
                first_line += block.count(b"\n")
                rest = rest[end:]
            if len(rest) > BLOCK_MAX_BYTES:
                raise IngestError(
                    f"{path}: more than {BLOCK_MAX_BYTES >> 20} MiB without a line that begins "
                    f"{MARK.strip()!r}. Cut the file between scrapes, or by time."
                )
    if rest or damage:
        yield _block(rest, first_line, damage)


def _filled(file: IO[bytes], rest: bytes, size: int) -> tuple[bytes, str, bool]:
    """Return at least `size` bytes, or all up to the end; why it broke off; whether it ended."""
    chunks, length = [rest], len(rest)
    try:
        while length < size:
            # read1: what one go gives is not lost when the next go fails
            chunk = cast("bytes", file.read1(CHUNK_BYTES))  # type: ignore[attr-defined]
            if not chunk:
                return b"".join(chunks), "", True
            chunks.append(chunk)
            length += len(chunk)
    except files.BROKEN_OFF as error:
        return b"".join(chunks), f"the file is cut or damaged here: {error}", True
    return b"".join(chunks), "", False


def _end(data: bytes) -> int:
    """Return where the block ends that the data begins with; 0 where that is not known yet."""
    if len(data) < BLOCK_BYTES + len(BOUNDARY):
        return 0
    found = data.rfind(BOUNDARY, 0, BLOCK_BYTES + len(BOUNDARY))
    if found == -1:
        found = data.find(BOUNDARY, BLOCK_BYTES)
    return found + 1


def _block(data: bytes, first_line: int, damage: str = "") -> Block:
    content = hashlib.sha256(data).hexdigest()
    if first_line == 1:
        data = data.removeprefix(files.BYTE_ORDER_MARK)
    return Block(first_line, data, content, damage)

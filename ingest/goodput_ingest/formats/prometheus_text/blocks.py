"""Files of appended scrapes, cut between scrapes: each block has whole ones and is read at once."""

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import IO, Final

from goodput_ingest.formats import files
from goodput_ingest.formats.prometheus_text.series import MARK
from goodput_queries.errors import IngestError

BLOCK_BYTES: Final = 16 * 1024 * 1024  # memory for so much is soon used again
BLOCK_MAX_BYTES: Final = 256 * 1024 * 1024  # a scrape of 40,000 GPUs
TAILS_BYTES: Final = (256 * 1024, 4 * 1024 * 1024)  # where a block's last mark is looked for first
BOUNDARY: Final = b"\n" + MARK.encode()


@dataclass(frozen=True)
class Block:
    """Consecutive lines; damage: why the reading broke off after them, empty where it did not."""

    data: bytes
    damage: str = ""


def blocks(path: Path) -> Iterator[Block]:
    """Yield the file in blocks that begin with a mark `# scraped_at`, but for the first.

    One reading of a GPU has many lines, which must not come apart. So a file without marks is one
    block, and raises IngestError where it is larger than BLOCK_MAX_BYTES. A block is the same
    bytes whenever the file has only grown, but for the last.
    """
    with files.open_bytes(path) as file:
        is_plain = isinstance(getattr(file, "raw", None), io.FileIO)
        for number, (data, damage) in enumerate(_plain(file) if is_plain else _unpacked(file)):
            if len(data) > BLOCK_MAX_BYTES:
                raise IngestError(
                    f"{path}: more than {BLOCK_MAX_BYTES >> 20} MiB without a line that begins "
                    f"{MARK.strip()!r}. Cut the file between scrapes, or by time."
                )
            text = data if number else data.removeprefix(files.BYTE_ORDER_MARK)
            del data
            yield Block(text, damage)
            del text


def _plain(file: IO[bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield blocks of a file that can be read anywhere: each is read once, in its length."""
    descriptor, at = file.fileno(), 0
    memory = cycle((io.BytesIO(), io.BytesIO()))  # one is parsed while the next is read
    while True:
        # a block that ends where it nearly always does is not copied to be cut
        if end := next((end for size in TAILS_BYTES if (end := _end_in(descriptor, at, size))), 0):
            data = _read(descriptor, end, at, next(memory))
        else:
            data = os.pread(descriptor, BLOCK_MAX_BYTES + 1, at)
            data = data[: _end(data) or None]
        if not data:
            return
        at += len(data)
        yield data, ""
        del data  # nobody else may hold what is to be used again


def _end_in(descriptor: int, at: int, size: int) -> int:
    """Return the length of the block that begins there, if it ends in its last bytes; else 0."""
    start = BLOCK_BYTES + len(BOUNDARY) - size
    tail = os.pread(descriptor, size, at + start)
    found = tail.rfind(BOUNDARY) if len(tail) == size else -1
    return start + found + 1 if found != -1 else 0


def _read(descriptor: int, size: int, at: int, memory: io.BytesIO) -> bytes:
    """Return bytes of a file in memory used before, whose pages need not be made again.

    Where the bytes returned before are still held they stay as they are, and other memory is used.
    """
    memory.seek(size)
    memory.write(b"\0")  # makes it as large
    with memory.getbuffer() as view:
        found = os.preadv(descriptor, [view[:size]], at)
    memory.truncate(found)
    return memory.getvalue()


def _unpacked(file: IO[bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield blocks of a stream; where it breaks off, what came before and why."""
    rest, damage, is_end = b"", "", False
    while not is_end and len(rest) <= BLOCK_MAX_BYTES:
        chunks, size = [rest], len(rest)
        wanted = size + BLOCK_BYTES + len(BOUNDARY)
        try:
            while size < wanted and not is_end:
                # read1: what one go gives is not lost when the next go fails
                chunk = file.read1(files.CHUNK_BYTES)  # type: ignore[attr-defined]
                chunks.append(chunk)
                size += len(chunk)
                is_end = not chunk
        except files.BROKEN_OFF as error:
            damage, is_end = f"the file is cut or damaged here: {error}", True
        rest = b"".join(chunks)
        while end := _end(rest):
            yield rest[:end], ""
            rest = rest[end:]
    if rest or damage:
        yield rest, damage


def _end(data: bytes) -> int:
    """Return where the block ends that the data begins with; 0 where the data does not show it."""
    if len(data) < BLOCK_BYTES + len(BOUNDARY):
        return 0
    found = data.rfind(BOUNDARY, 0, BLOCK_BYTES + len(BOUNDARY))
    if found == -1:
        found = data.find(BOUNDARY, BLOCK_BYTES)
    return found + 1

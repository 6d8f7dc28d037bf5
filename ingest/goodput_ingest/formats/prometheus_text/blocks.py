"""Files of appended scrapes, cut between scrapes: each block has whole ones and is read at once."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from goodput_ingest.formats import files
from goodput_ingest.formats.prometheus_text.series import MARK
from goodput_queries.errors import IngestError

BLOCK_BYTES: Final = 16 * 1024 * 1024
BLOCK_MAX_BYTES: Final = 256 * 1024 * 1024  # a scrape of 40,000 GPUs
# what `date` or `date -Is` writes before a scrape; with a zone's name it would not be the moment
DATE_LINE: Final = re.compile(
    rb"^(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{7,8} (?:[AP]M )?UTC 20\d\d"
    rb"|20\d\d-\d\d-\d\dT[\d:]{8}(?:Z|[+-]\d\d:\d\d))(?=\r?$)",
    re.MULTILINE,
)
DATE_FORMATS: Final = ("%a %b %d %H:%M:%S UTC %Y", "%a %b %d %I:%M:%S %p UTC %Y")
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
        for number, (data, damage) in enumerate(_whole(file)):
            if len(data) > BLOCK_MAX_BYTES:
                raise IngestError(
                    f"{path}: more than {BLOCK_MAX_BYTES >> 20} MiB without a line that begins "
                    f"{MARK.strip()!r}. Cut the file between scrapes, or by time."
                )
            text = data if number else data.removeprefix(files.BYTE_ORDER_MARK)
            del data
            if not text.startswith(BOUNDARY[1:]):
                text = DATE_LINE.sub(_mark, text)
            yield Block(text, damage)
            del text


def _mark(line: re.Match[bytes]) -> bytes:
    """Return a line of `date` as the mark of a scrape; one that is no date as it is."""
    text = line[0].decode()
    for form in DATE_FORMATS:
        with contextlib.suppress(ValueError):
            text = f"{datetime.strptime(text, form):%Y-%m-%dT%H:%M:%SZ}"  # noqa: DTZ007 -- UTC
    return f"{MARK}{text}".encode() if text[:2] == "20" else line[0]


def _whole(file: IO[bytes]) -> Iterator[tuple[bytes, str]]:
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

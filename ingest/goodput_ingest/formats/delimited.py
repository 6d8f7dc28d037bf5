"""Text with a header line and a delimiter, in blocks of whole lines: `sacct -P`, `sacctmgr -P`.

The delimiter is the text between the first two names of the header. No quoting: a row whose
number of fields differs from the header's holds the delimiter in its text, and is rejected, unless
only its last field can.
"""

import hashlib
import io
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
import polars as pl

from goodput_ingest.formats import files
from goodput_queries.errors import IngestError
from goodput_queries.evidence.batch import Reject
from goodput_queries.storage.row_groups import ROW_GROUP

DELIMITER_IN_NAME = ": a name holds a |? `--delimiter=$'\\x1f'` of sacct keeps fields apart."
LINES_PER_BLOCK = 2 * ROW_GROUP  # whole ones are written once, not merged later
BYTES_PER_BLOCK = 64 * 1024 * 1024
CELLS_MAX = 20_000_000  # of a block that is read whole; a reference to each takes 16 bytes
UNIT_SEPARATOR = "\x1f"
NEWLINE = ord("\n")
_FIRST_NAME = re.compile(r"([A-Za-z][A-Za-z0-9_/() ]*?)([^A-Za-z0-9_/() ]+)[A-Za-z]")


@dataclass(frozen=True)
class Block:
    """Consecutive lines of a file: number of the first (from 1), text, digest, what broke off.

    lines: how many they are, where that was counted.
    """

    first_line: int
    data: bytes
    digest: str = ""
    rejects: tuple[Reject, ...] = ()
    lines: int | None = None


@dataclass(frozen=True)
class Header:
    """The first line: names of the fields, the delimiter, and the line itself.

    is_last_free: the last field, and no other, is a text in which the delimiter may stand
    """

    names: tuple[str, ...]
    delimiter: str
    line: str
    is_last_free: bool = False


@dataclass(frozen=True)
class _Layout:
    """The layout of a row: delimiter, number of fields, and the wanted ones.

    is_last_free: as of the header
    """

    delimiter: str
    fields: int
    columns: dict[int, str]
    is_last_free: bool


def blocks(path: Path) -> Iterator[Block]:
    """Yield a file in blocks of whole lines, CR LF made LF, undecodable bytes replaced.

    A block is the same bytes whenever the file has only grown, so that its digest lets a repeated
    ingest skip it. Of a line over files.LINE_MAX_BYTES only the beginning is kept. Where a gzip
    stream was cut the last block holds what came before and says so among its rejects.
    """
    first_line = 1
    for data, lines, damage in _whole_lines(path):
        digest = hashlib.sha256(data, usedforsecurity=False)
        digest.update(damage.encode())
        text = data.removeprefix(files.BYTE_ORDER_MARK) if first_line == 1 else data
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if not text.isascii():
            text = text.decode("utf-8", files.WINDOWS).encode()
        rejects = (Reject(first_line + lines, damage),) if damage else ()
        block = Block(first_line, text, digest.hexdigest()[: files.DIGEST_CHARS], rejects, lines)
        del data, text  # whoever has the block alone decides when its memory is used again
        yield block
        del block
        first_line += lines


def _whole_lines(path: Path) -> Iterator[tuple[bytes, int, str]]:
    """Yield lines without the last one's end, their number, and the read error ('' for none).

    Lines are counted a chunk at a time: to split millions of them costs more than to parse them.
    """
    # grows where it lies: chunks held and then joined are as much once more; memory used before
    # need not be made again, and where somebody still holds what is in it other memory is used
    memory = cycle((io.BytesIO(), io.BytesIO()))  # one is parsed while the next is read
    held = next(memory)
    lines = unended = 0  # newlines held, bytes since the last newline
    lines_max = LINES_PER_BLOCK + 1  # the header
    damage = ""
    with files.open_bytes(path) as file:
        while True:
            try:
                chunk = file.read1(files.CHUNK_BYTES)  # type: ignore[attr-defined]
            except files.BROKEN_OFF as error:
                damage = f"the file is cut or damaged here: {error}"
                break
            if not chunk:
                break
            chunk, unended = _capped(chunk, unended)
            while (newlines := _newlines(chunk)) and (
                lines + newlines >= lines_max or held.tell() + len(chunk) >= BYTES_PER_BLOCK
            ):
                taken = min(newlines, lines_max - lines)
                end = _end_of_line(chunk, taken)
                held.write(memoryview(chunk)[: end - 1])
                yield _taken(held), lines + taken, ""
                held = next(memory)
                held.seek(0)
                lines, lines_max = 0, LINES_PER_BLOCK
                chunk = chunk[end:]
            held.write(chunk)
            lines += newlines
    if held.tell() or damage:
        rest = _taken(held)
        yield rest.removesuffix(b"\n"), lines + (unended > 0), damage


def _newlines(chunk: bytes) -> int:
    """Return how many there are: where they are many, numpy counts them sooner than `count`."""
    return int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == NEWLINE))


def _taken(held: io.BytesIO) -> bytes:
    """Return what was written, not copied."""
    held.truncate()
    return held.getvalue()


def _capped(chunk: bytes, unended: int) -> tuple[bytes, int]:
    """Return a chunk less what its first line, begun before it, has over the cap; and what is open.

    A line that begins inside a chunk cannot be too long in it: a chunk is smaller than the cap.
    """
    end = chunk.find(b"\n")
    first = len(chunk) if end < 0 else end
    if (over := unended + first - files.LINE_MAX_BYTES) > 0:
        chunk = chunk[: max(0, first - over)] + chunk[first:]
    last = chunk.rfind(b"\n")
    return chunk, (unended + len(chunk) if last < 0 else len(chunk) - last - 1)


def _end_of_line(chunk: bytes, number: int) -> int:
    """Return the offset after the end of the line of this number, from 1."""
    return len(chunk) - len(chunk.split(b"\n", number)[-1])


def text_of(blocks: Iterable[Block]) -> str:
    """Return the text of consecutive blocks."""
    return b"\n".join(block.data for block in blocks).decode("utf-8", errors="replace")


def header_of(line: str) -> Header | None:
    """Return the header in a line, None where it is not one."""
    line = line.rstrip("\r\n")
    match = _FIRST_NAME.match(line)
    if match is None:
        return None
    return Header(tuple(line.split(match[2])), match[2], line)


def first_header(data: bytes) -> Header:
    """Return the header that a text begins with; raises IngestError where there is none."""
    lines = data[: files.HEAD_BYTES].decode("utf-8", errors="replace").split("\n")
    header = header_of(next((line for line in lines if line.strip()), ""))
    if header is None:
        raise IngestError("slurm: the first line is not a header of fields.")
    return header


def rows_of(
    block: Block, header: Header, wanted: Container[str]
) -> tuple[pl.DataFrame, list[Reject]]:
    """Return the block's rows (texts of the wanted fields and `line`) and the rejected rows.

    Blank lines and repetitions of the header are no rows.
    """
    data, delimiter, header_line = block.data, header.delimiter, header.line.encode()
    if len(delimiter.encode()) > 1:
        data = data.replace(delimiter.encode(), UNIT_SEPARATOR.encode())
        header_line = header_line.replace(delimiter.encode(), UNIT_SEPARATOR.encode())
        delimiter = UNIT_SEPARATOR
    names = header.names
    columns = {i: name for i, name in enumerate(names) if name in wanted and names.index(name) == i}
    layout = _Layout(delimiter, len(names), columns, header.is_last_free)
    first_line = block.first_line
    lines = data.count(b"\n") + 1 if block.lines is None else block.lines
    while data.startswith((b"\n", header_line + b"\n")):
        data = data[data.index(b"\n") + 1 :]
        first_line += 1
        lines -= 1
    if not data or data == header_line:
        return _no_rows(columns), []
    clean = _clean_rows(data, lines, layout, names[0] if header_line else None)
    if clean is not None:
        numbers = pl.int_range(first_line, first_line + clean.height, eager=True)
        return clean.select(numbers.alias("line"), pl.all()), []
    return _odd_rows(data, layout, header_line.decode(), first_line)


def _no_rows(columns: dict[int, str]) -> pl.DataFrame:
    return pl.DataFrame(schema={"line": pl.Int64, **dict.fromkeys(columns.values(), pl.String)})


def _clean_rows(
    data: bytes, lines: int, layout: _Layout, first_name: str | None
) -> pl.DataFrame | None:
    """Return the rows of so many lines where each has its number of fields, else None.

    first_name: what a header has in its first field, if there is one; such a line is no row

    The CSV reader fills up short lines without a word; long ones it refuses where it is asked for
    all fields. Where none is long and all together have their number of delimiters, none is short:
    these are what is neither of a field nor the end of a line.
    """
    delimiters = lines * (layout.fields - 1)
    if delimiters > CELLS_MAX:
        return None
    last_line = data[data.rfind(b"\n") + 1 :]  # of which the reader takes an empty field too many
    if last_line.count(layout.delimiter.encode()) != layout.fields - 1:
        return None
    try:
        # in one piece at once: else what is reckoned with it is, column by column, over and over
        table = _read(data, layout, range(layout.fields)).rechunk()
    except pl.exceptions.PolarsError:
        return None
    size = sum(int(column.str.len_bytes().sum()) for column in table)
    # a CR, which the reader takes for the end of a line or leaves out, is missing here too
    is_clean = table.height == lines and size + delimiters + lines - 1 == len(data)
    is_header = first_name is not None and (table["column_1"] == first_name).any()
    return _named(table, layout) if is_clean and not is_header else None


def _read(data: bytes, layout: _Layout, fields: Iterable[int]) -> pl.DataFrame:
    """Return these fields of the rows; what a line has beyond all of them may be cut."""
    return pl.read_csv(
        data,
        has_header=False,
        separator=layout.delimiter,
        quote_char=None,
        empty_string_is_null=False,
        infer_schema=False,
        schema={f"column_{i + 1}": pl.String for i in range(layout.fields)},
        columns=[f"column_{i + 1}" for i in fields],
    )


def _named(table: pl.DataFrame, layout: _Layout) -> pl.DataFrame:
    return table.select(pl.col(f"column_{i + 1}").alias(name) for i, name in layout.columns.items())


def _odd_rows(
    data: bytes, layout: _Layout, header_line: str, first_line: int
) -> tuple[pl.DataFrame, list[Reject]]:
    """Return the rows of a block in which some line does not match the header."""
    texts = data.decode("utf-8", errors="replace").removesuffix("\n").split("\n")
    lines: list[int] = []
    rows: list[str] = []
    rejects: list[Reject] = []
    for number, text in enumerate(texts, start=first_line):
        found = text.count(layout.delimiter) + 1
        is_blank = found == 1 and not text.strip()  # \x1f between fields is a blank as well
        if is_blank or text == header_line:
            continue
        if found == layout.fields or (layout.is_last_free and found > layout.fields):
            lines.append(number)
            rows.append(text)
        else:
            reason = f"slurm: line {number} has {found} fields, expected {layout.fields}"
            hint = DELIMITER_IN_NAME if found > layout.fields and layout.delimiter == "|" else "."
            rejects.append(Reject(number, f"{reason}{hint}", text))
    if not rows:
        return _no_rows(layout.columns), rejects
    good = "\n".join(rows)
    is_free = good.count(layout.delimiter) > len(rows) * (layout.fields - 1)
    if is_free or "\r" in good:  # the CSV reader cuts more, and takes a lone CR for a line's end
        most = layout.fields - 1
        cells = [[row.split(layout.delimiter, most)[i] for i in layout.columns] for row in rows]
        schema = dict.fromkeys(layout.columns.values(), pl.String())
        table = pl.DataFrame(cells, schema=schema, orient="row")
    else:
        table = _named(_read(good.encode(), layout, layout.columns), layout)
    return table.select(pl.Series("line", lines, pl.Int64), pl.all()), rejects

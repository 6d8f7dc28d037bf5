"""Files in parts: lines, blocks and groups of rows, elements of a JSON document."""

import bz2
import gzip
import io
import json
import lzma
import random
import threading
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.tables import each

from goodput_ingest.formats import delimited, files, row_groups
from goodput_ingest.formats.json_text import json_stream
from goodput_ingest.formats.json_text.json_stream import BrokenDocumentError, items
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.row_groups import Held
from goodput_ingest.prefetch import prefetch
from goodput_ingest.source import Reject
from goodput_queries.errors import IngestError


def lines_of(path, **sizes):
    return [line for part in files.parts(path, **sizes) for line in part.lines]


@pytest.fixture
def file(tmp_path):
    """Return what writes a file of these bytes, packed if asked."""

    def written(content, *, is_gzip=False):
        (tmp_path / "x").write_bytes(gzip.compress(content) if is_gzip else content)
        return tmp_path / "x"

    return written


@pytest.mark.parametrize("is_gzip", [False, True])
@each(
    *((text.encode(), text.splitlines())
      for text in ("", "a", "a\n", "a\nb", "\n\na\n", "a\r\nb\r\n", "ä\n")),
    ("\ufeffone\ntwo".encode("utf-16-le")[:-1], ["one", "tw\ufffd"]),  # half a character
    (b"\xef\xbb\xbfa\x81\n\x9d\n", ["a\ufffd", "\ufffd"]),
)  # fmt: skip
def test_lines_come_without_ends_and_what_is_no_text_is_replaced(file, is_gzip, content, lines):
    assert lines_of(file(content, is_gzip=is_gzip)) == lines


def by_arrow(name):
    def packed(content):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, name) as stream:
            stream.write(content)
        return sink.getvalue().to_pybytes()

    return packed


PACKERS = {
    "gzip": gzip.compress, "bzip2": bz2.compress, "xz": partial(lzma.compress, preset=0),
    "zstd": by_arrow("zstd"), "lz4": by_arrow("lz4"),
}  # fmt: skip
LINES = [f"{number}: {'x' * (number % 50)}" for number in range(60_000)]


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("streams", [1, 2])
def test_a_packed_file_is_read_as_what_is_in_it(tmp_path, packer, streams):
    path = tmp_path / "x"
    content = "".join(f"{line}\n" for line in LINES).encode()
    path.write_bytes(streams * PACKERS[packer](content))

    assert lines_of(path) == streams * LINES
    assert files.head(path) == content[: files.HEAD_BYTES]


@pytest.mark.parametrize("packer", PACKERS)
def test_a_packed_file_that_was_cut_gives_what_came_before(tmp_path, packer):
    path = tmp_path / "x"
    chance = random.Random(1)  # noqa: S311 -- bytes that no packer makes shorter
    noise = [chance.randbytes(90).hex() for _ in range(12_000)]
    whole = PACKERS[packer]("".join(f"{line}\n" for line in noise).encode())
    path.write_bytes(whole[: -len(whole) // 4])

    *_, last = parts = list(files.parts(path))
    lines = [line for part in parts for line in part.lines]
    assert len(lines) > 10
    assert lines[:-1] == noise[: len(lines) - 1]
    assert "the file is cut or damaged here" in last.damage


def test_an_xz_file_that_asks_for_too_much_memory_is_not_unpacked(tmp_path):
    path = tmp_path / "x"
    large = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    path.write_bytes(lzma.compress(b"a\n", filters=large))

    (part,) = files.parts(path)
    assert (part.lines, part.damage) == (
        [], "the file is cut or damaged here: Memory usage limit exceeded",
    )  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["", "a\r\nb\r\n", "größer\n" * 9_000, "🚀" * 70_000])
@pytest.mark.parametrize("is_gzip", [False, True])
def test_text_in_utf_16_is_read_as_in_utf_8(file, encoding, text, *, is_gzip):
    path = file(f"\ufeff{text}".encode(encoding), is_gzip=is_gzip)
    assert lines_of(path) == text.splitlines()
    assert files.head(path) == text.encode()[: files.HEAD_BYTES]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("per_part", [1, 2, 100])
def test_parts_are_the_same_however_the_file_is_read(file, monkeypatch, chunk, per_part):
    path = file(b"one\n\nthree\nfour and more\n5")
    whole = list(files.parts(path, lines_per_part=per_part))
    monkeypatch.setattr(files, "CHUNK_BYTES", chunk)

    assert list(files.parts(path, lines_per_part=per_part)) == whole
    assert [p.first_line for p in whole] == list(range(1, 6, per_part))
    assert [line for p in whole for line in p.lines] == ["one", "", "three", "four and more", "5"]


def test_the_parts_of_a_grown_file_keep_their_digests(file):
    before, after = (
        [part.digest for part in files.parts(file(content), bytes_per_part=8)]
        for content in (b"aaaa\nbbbb\ncccc\n", b"aaaa\nbbbb\ncccc\ndddd\neeee\n")
    )

    assert len(before) == 2
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_a_head_has_no_byte_order_mark(file):
    assert files.head(file(b"\xef\xbb\xbfa\x81\n\x9d\n")) == b"a\x81\n\x9d\n"


def test_names_in_windows_1252_stay_apart(file):
    path = file("Müller\nMöller €\n".encode("cp1252") + "größer\n".encode())

    assert lines_of(path) == ["Müller", "Möller €", "größer"]
    assert [block.data.decode() for block in delimited.blocks(path)] == ["Müller\nMöller €\ngrößer"]
    document = io.BytesIO('{"users": ["Müller", "Möller"]}'.encode("cp1252"))
    assert list(items(document, ["users"])) == [("users", "Müller"), ("users", "Möller")]


@pytest.mark.parametrize("chunk", [1, 5, 1000])
def test_of_a_huge_line_the_beginning_is_kept_and_counting_goes_on(file, monkeypatch, chunk):
    monkeypatch.setattr(files, "LINE_MAX_BYTES", 10)
    monkeypatch.setattr(files, "CHUNK_BYTES", chunk)

    first, huge, last = lines_of(file(b"short\n" + b"y" * 500 + b"\nlast\n"))

    assert (first, set(huge), last) == ("short", {"y"}, "last")


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path):
    with pytest.raises(IngestError, match="nothing here"):
        list(files.parts(tmp_path / "nothing here"))
    assert files.head(tmp_path / "nothing here") == b""


@given(st.lists(st.text("ab|", max_size=9), max_size=40), st.booleans())
def test_blocks_together_are_the_lines_of_the_file(tmp_path_factory, lines, is_ended):
    lines = [*lines, "last"]
    file = tmp_path_factory.mktemp("blocks") / "file"
    file.write_text("\n".join(lines) + "\n" * is_ended)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "LINES_PER_BLOCK", 3)
        patch.setattr(files, "CHUNK_BYTES", 7)
        blocks = list(delimited.blocks(file))

    assert [line for block in blocks for line in block.data.decode().split("\n")] == lines
    assert [block.first_line for block in blocks] == [1, *range(5, len(lines) + 1, 3)]


CELLS = st.lists(st.text("ab \"'\t0", max_size=2), min_size=1, max_size=5)


@given(st.lists(CELLS, max_size=12), st.sampled_from(["|", ";", "\x1f"]))
@example([["a", "b", "c"], ["a", "b"], ["a", "b", "c", ""]], "|")
@example([["a", "b", "c"], ["a", "b", "c", ""], ["a", "b"]], "|")
@example([["", "", "", ""], ["", ""]], "|")
@example([["a", "b", "c", ""]], "|")
@example([["", "", ""], ["a"]], "\x1f")
def test_a_line_is_a_row_where_it_has_as_many_fields_as_the_header(rows, delimiter):
    header = delimited.Header(("x", "y", "z"), delimiter, delimiter.join("xyz"))
    lines = [delimiter.join(cells) for cells in rows]
    block = delimited.Block(1, "\n".join([header.line, *lines]).encode())

    table, rejects = delimited.rows_of(block, header, {"x", "z"})

    numbered = [(n, cells) for n, cells in enumerate(rows, 2) if len(cells) > 1 or cells[0].strip()]
    whole = [(n, cells[0], cells[2]) for n, cells in numbered if len(cells) == 3]
    assert table.select("line", "x", "z").rows() == whole
    assert [reject.line for reject in rejects] == [n for n, cells in numbered if len(cells) != 3]


def test_a_block_ends_before_it_grows_large_and_a_long_line_is_cut(file, monkeypatch):
    monkeypatch.setattr(delimited, "BYTES_PER_BLOCK", 20)
    monkeypatch.setattr(files, "CHUNK_BYTES", 8)
    monkeypatch.setattr(files, "LINE_MAX_BYTES", 10)
    path = file(("line\n" * 20 + "x" * 95 + "\nnext\n" + "y" * 55).encode())

    assert max(len(block.data) for block in delimited.blocks(path)) <= 20 + 8
    lines = delimited.text_of(delimited.blocks(path)).split("\n")
    assert lines == [*["line"] * 20, "x" * 10, "next", "y" * 10]


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch):
    monkeypatch.setattr(row_groups, "ROW_GROUP", 10)


def held_parts(*sizes):
    found, at = Held("gpu_samples"), 0
    for size in sizes:
        found.add(Parsed("gpu_samples", pl.DataFrame({"n": range(at, at + size)})))
        at += size
    return found


@each(((19,), 0), ((20,), 10), ((5, 14), 0), ((5, 30, 4), 20), ((), 0))
def test_whole_groups_are_handed_on_and_one_stays(sizes, handed_on):
    parts = held_parts(*sizes)

    whole = parts.whole_groups()

    assert (whole.rows.height if whole else 0) == handed_on


def test_no_row_is_lost_or_duplicated_and_what_was_rejected_is_reported_once():
    parts, found = held_parts(), list[Parsed]()
    for at in range(0, 91, 7):
        rejects = [Reject(7, "why", "what")] * (at == 7)
        parts.add(Parsed("gpu_samples", pl.DataFrame({"n": range(at, at + 7)}), rejects))
        if whole := parts.whole_groups():
            found.append(whole)

    combined = [*found, parts.rest()]

    assert pl.concat([part.rows for part in combined])["n"].to_list() == list(range(91))
    assert sum(len(part.rejects) for part in combined) == 1


def test_parts_may_lack_columns_and_number_their_texts_each_for_itself():
    parts = Held("gpu_samples")
    for name in ("a", "b"):
        uuid = pl.Series([name], dtype=pl.Enum([name]))
        parts.add(Parsed("gpu_samples", pl.DataFrame({"gpu_uuid": uuid, name: [1]})))

    assert parts.rest().rows.rows() == [("a", 1, None), ("b", None, 1)]


def test_the_next_item_is_made_while_one_is_used_and_what_fails_fails_after_it():
    made = threading.Event()

    def items():
        yield 1
        made.set()
        yield 2
        raise ValueError("cut here")

    found = prefetch(items())

    assert next(found) == 1
    assert made.wait(timeout=10)
    assert next(found) == 2
    with pytest.raises(ValueError, match="cut here"):
        next(found)


# sizes of items, how much may wait, and what is made while the first one is used
@each(
    {
        "no more than one item waits": ([1] * 9, 1, [1, 1]),
        "small items do not keep the big one behind them": ([9, 1, 9, 1, 9], 9, [9, 1, 9]),
    }
)
def test_items_made_ahead(sizes, most, expected):
    made = []

    def items():
        for size in sizes:
            made.append(size)
            yield size

    found = prefetch(items(), size=lambda size: size, most=most)
    first = next(found)
    found.close()

    assert first == sizes[0]
    assert made == expected


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.lists(VALUES, max_size=6), VALUES, st.sampled_from([None, 1]), st.integers(1, 9))
def test_elements_are_those_of_the_whole_document(jobs, meta, indent, chunk):
    document = json.dumps({"jobs": jobs, "meta": meta}, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK_BYTES", chunk)
        found = list(items(io.BufferedReader(io.BytesIO(document)), ("jobs",)))

    assert found == [*(("jobs", job) for job in jobs), ("meta", meta)]


@each(
    ('{"jobs":[1,2', "cut"), ('{"jobs":[1,2,{"a":', "cut or no JSON"),
    ('{"jobs":[1,2,' + "[" * 100_000, "nested too deeply"),
    ('{"jobs":[1,2,"' + "x" * 2_000, "too long"), ('{"jobs":[1,2;3]}', "',' is expected"),
)  # fmt: skip
def test_what_comes_before_the_damage_is_read(monkeypatch, text, reason):
    monkeypatch.setattr(json_stream, "VALUE_MAX_CHARS", 1_000 if "xxx" in text else 10**6)
    monkeypatch.setattr(files, "CHUNK_BYTES", 500)
    found = list[tuple[str, Any]]()

    with pytest.raises(BrokenDocumentError, match=reason):
        found.extend(items(io.BufferedReader(io.BytesIO(text.encode())), ("jobs",)))

    assert found == [("jobs", 1), ("jobs", 2)]


def test_a_cut_gzip_stream_gives_what_came_before_the_cut():
    whole = gzip.compress(json.dumps({"jobs": list(range(100_000))}).encode())
    cut = gzip.GzipFile(fileobj=io.BytesIO(whole[: len(whole) // 2]))
    found = list[tuple[str, Any]]()

    with pytest.raises(BrokenDocumentError):
        found.extend(items(cut, ("jobs",)))

    assert found[:1000] == [("jobs", n) for n in range(1000)]

import gzip

import pytest

from goodput_ingest.formats import files
from goodput_queries.errors import IngestError


def lines_of(path, **sizes):
    return [line for part in files.parts(path, **sizes) for line in part.lines]


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\nb", "\n\na\n", "a\r\nb\r\n", "ä\n"])
@pytest.mark.parametrize("is_gzip", [False, True])
def test_lines_come_without_their_ends(tmp_path, text, *, is_gzip):
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(text.encode()) if is_gzip else text.encode())

    assert lines_of(path) == text.splitlines()


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("per_part", [1, 2, 100])
def test_parts_are_the_same_however_the_file_is_read(tmp_path, monkeypatch, chunk, per_part):
    path = tmp_path / "x"
    path.write_bytes(b"one\n\nthree\nfour and more\n5")
    whole = list(files.parts(path, lines_per_part=per_part))
    monkeypatch.setattr(files, "CHUNK_BYTES", chunk)

    assert list(files.parts(path, lines_per_part=per_part)) == whole
    assert [p.first_line for p in whole] == list(range(1, 6, per_part))
    assert [line for p in whole for line in p.lines] == ["one", "", "three", "four and more", "5"]


def test_the_parts_of_a_grown_file_keep_their_digests(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"aaaa\nbbbb\ncccc\n")
    before = [p.digest for p in files.parts(path, bytes_per_part=8)]
    with path.open("ab") as file:
        file.write(b"dddd\neeee\n")

    after = [p.digest for p in files.parts(path, bytes_per_part=8)]

    assert len(before) == 2
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_undecodable_bytes_are_replaced_and_a_byte_order_mark_is_dropped(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbfa\xff\n\x80\n")

    assert lines_of(path) == ["a\ufffd", "\ufffd"]
    assert files.head(path) == b"a\xff\n\x80\n"


@pytest.mark.parametrize("chunk", [1, 5, 1000])
def test_of_a_huge_line_the_beginning_is_kept_and_counting_goes_on(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(files, "LINE_MAX_BYTES", 10)
    monkeypatch.setattr(files, "CHUNK_BYTES", chunk)
    path = tmp_path / "x"
    path.write_bytes(b"short\n" + b"y" * 500 + b"\nlast\n")

    kept = lines_of(path)

    assert [kept[0], kept[2]] == ["short", "last"]
    assert set(kept[1]) == {"y"}
    assert len(kept) == 3


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path):
    with pytest.raises(IngestError, match="nothing here"):
        list(files.parts(tmp_path / "nothing here"))
    assert files.head(tmp_path / "nothing here") == b""

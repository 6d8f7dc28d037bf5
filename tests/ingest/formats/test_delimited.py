"""Text with a header, in blocks of whole lines."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from goodput_ingest.formats import delimited, files


def lines_of(path):
    return delimited.text_of(delimited.blocks(path)).split("\n")


@given(st.lists(st.text("ab|", max_size=9), max_size=40), st.booleans())
def test_blocks_together_are_the_lines_of_the_file(tmp_path_factory, lines, is_ended):
    lines = [*lines, "last"]
    file = tmp_path_factory.mktemp("blocks") / "file"
    file.write_text("\n".join(lines) + "\n" * is_ended)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "LINES_PER_BLOCK", 3)
        patch.setattr(files, "CHUNK_BYTES", 7)
        blocks = list(delimited.blocks(file))

    found = [line for block in blocks for line in block.data.decode().split("\n")]
    assert found == lines
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


def test_a_block_ends_before_it_grows_large(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BYTES_PER_BLOCK", 20)
    monkeypatch.setattr(files, "CHUNK_BYTES", 8)
    file = tmp_path / "file"
    file.write_text("line\n" * 20)

    assert max(len(block.data) for block in delimited.blocks(file)) <= 20 + 8
    assert lines_of(file) == ["line"] * 20


def test_of_a_line_that_is_too_long_the_beginning_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LINE_MAX_BYTES", 10)
    monkeypatch.setattr(files, "CHUNK_BYTES", 4)
    file = tmp_path / "file"
    file.write_text("short\n" + "x" * 95 + "\nnext\n" + "y" * 55)

    assert lines_of(file) == ["short", "x" * 10, "next", "y" * 10]

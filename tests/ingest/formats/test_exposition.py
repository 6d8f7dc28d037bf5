"""The text format in parts and blocks; forms of a line and bad ones: golden cases of dcgm."""

import contextlib
import gzip

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.formats.prometheus_text import blocks as exposition_blocks
from goodput_ingest.formats.prometheus_text.blocks import blocks
from goodput_ingest.formats.prometheus_text.exposition import joined, parse
from goodput_ingest.formats.prometheus_text.series import HEAD_MAX_BYTES, KnownSeries
from goodput_queries.errors import IngestError

KEEP = frozenset({"uuid", "pod", "instance", "hostname"})


def said(found):
    """Return metric, labels, time and value of each point."""
    sets, named = found.label_sets.rows(named=True), found.series.rows()
    return [(named[s][0], sets[named[s][1]], ts, value) for s, ts, value in found.points.rows()]


def read(text):
    return parse(text.encode(), KnownSeries(KEEP))


def test_a_line_that_is_too_long_costs_only_itself():
    line = 'up{pod="' + "x" * HEAD_MAX_BYTES + '"} 1'

    found = read(f'up{{uuid="a"}} 1\n{line}\nup{{uuid="b"}} 2\n')

    assert [value for *_, value in said(found)] == [1.0, 2.0]
    (reject,) = found.rejects
    assert (reject.line, reject.content) == (2, line[:500])
    assert "longer than" in reject.reason


MOMENTS = st.builds(
    "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}{}{}".format,
    *(st.integers(0, most) for most in (9_999, 13, 32, 25, 61, 61)),
    st.sampled_from(["", ".5", ".123456", ".1234567", ".9999999"]),
    st.sampled_from(["Z", "z", "", "+00:00", "+0200", "-23:59"]),
)


@given(st.lists(MOMENTS, min_size=1, max_size=5))
@example(["1000-01-01T00:00:00Z", "2200-01-01T00:00:00Z", "2199-12-31T23:59:59Z"])
@example(["0000-01-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-06-30T23:59:60Z"])
def test_marks_say_what_moments_say_anywhere(texts):
    found = read("".join(f'# scraped_at {text}\nup{{uuid="a"}} 1\n' for text in texts))

    def moment(text):
        with contextlib.suppress(FieldError):
            return json_lines.moment({"text": text}, "text")
        return None

    assert found.points["ts"].to_list() == [moment(text) for text in texts]


def test_a_digest_is_of_what_the_lines_say():
    one = 'up{uuid="a"} 1\nup{uuid="b"} 2\n'
    same = ["# HELP up x\n" + one, one.replace(" 1", "  1.0")]
    others = [
        one.replace("1", "3"), one.replace('"a"', '"c"'), one.replace("up", "down"),
        one + "garbage\n", one.replace(" 1", " 1 1795177770500"),
        'up{uuid="b"} 1\nup{uuid="a"} 2\n',
    ]  # fmt: skip

    assert {read(text).digest("x") for text in same} == {read(one).digest("x")}
    assert len({read(text).digest("x") for text in [one, *others]} | {read(one).digest("y")}) == 8


def test_a_part_goes_on_with_the_series_of_the_parts_before_it():
    known = KnownSeries(KEEP)
    texts = [
        b'up{uuid="a"} 1\nup{uuid="b"} 2\n',
        b'# scraped_at 2026-11-20T12:00:00Z http://n1/\ndown{uuid="b"} 3\nup{uuid="b"} 4\n',
        b'up{uuid="c"} 5 1795177770500\n9up{uuid="a"} 6\nup{uuid="b",pod="p"} 7\n',
        b'9up{uuid="a"} 8\nup{uuid="c"} 9\n# HELP up 9\nup{uuid="a"} x\nup{uuid="a"} 10\n',
    ]

    parts = [parse(text, known) for text in texts]

    one = joined(parts)
    assert [(metric, labels["uuid"], value) for metric, labels, _, value in said(one)] == [
        ("up", "a", 1), ("up", "b", 2), ("down", "b", 3), ("up", "b", 4), ("up", "b", 7),
        ("up", "c", 5), ("up", "c", 9), ("up", "a", 10),
    ]  # fmt: skip
    no_name = "the line does not begin with the name of a metric"
    reasons = [reject.reason for reject in one.rejects]
    assert reasons == [no_name, no_name, "the value is not a number"]
    assert (one.series.height, one.lines) == (5, 13)


def small_blocks(monkeypatch, size, most=10_000):
    monkeypatch.setattr(exposition_blocks, "BLOCK_BYTES", size)
    monkeypatch.setattr(exposition_blocks, "BLOCK_MAX_BYTES", most)


SCRAPES = b"".join(
    b"# scraped_at 2026-11-20T12:%02d:00Z http://n1/\n" % minute
    + b"".join(b'up{uuid="%d"} %d\n' % (gpu, minute) for gpu in range(minute % 5 + 1))
    for minute in range(60)
)


@pytest.fixture
def blocks_of(tmp_path):
    """Return what gives the blocks of a file of these bytes."""

    def read(data):
        (tmp_path / "scrapes.prom").write_bytes(data)
        return list(blocks(tmp_path / "scrapes.prom"))

    return read


@pytest.mark.parametrize("size", [64, 200, 400, 1000, 100_000])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_is_cut_between_scrapes(blocks_of, monkeypatch, size, pack):
    small_blocks(monkeypatch, size)

    found = [block.data for block in blocks_of(pack(SCRAPES))]

    assert b"".join(found) == SCRAPES
    assert all(data.startswith(b"# scraped_at") for data in found)
    assert len(found) > 1 or size == 100_000


def test_a_packed_file_that_was_cut_gives_what_came_before(blocks_of):
    last = blocks_of(gzip.compress(SCRAPES)[:-20])[-1]
    assert SCRAPES.startswith(last.data)
    assert "cut or damaged" in last.damage


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_one_huge_scrape_is_refused_not_read_into_memory(blocks_of, monkeypatch, pack):
    small_blocks(monkeypatch, 400, most=2000)
    with pytest.raises(IngestError, match="without a line that begins '# scraped_at'"):
        blocks_of(pack(b'up{uuid="a"} 1\n' * 1000))

# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""The text format, line by line: what a line says, and what a bad one costs."""

import contextlib
import gzip
from datetime import datetime

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
    sets = [
        {name: value for name, value in row.items() if value is not None}
        for row in found.label_sets.rows(named=True)
    ]
    named = found.series.rows()
    return [(named[s][0], sets[named[s][1]], ts, value) for s, ts, value in found.points.rows()]


def read(text):
    return parse(text.encode() if isinstance(text, str) else text, KnownSeries(KEEP))


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ("up 1", {}, 1.0),
        ("up{} 1", {}, 1.0),
        ('up{uuid="a",} 1', {"uuid": "a"}, 1.0),
        (' up { uuid = "a" , pod="b" }  1 ', {"uuid": "a", "pod": "b"}, 1.0),
        ('up{uuid="a"} 1e5', {"uuid": "a"}, 1e5),
        ('up{uuid="a"} +Inf', {"uuid": "a"}, float("inf")),
        ('up{uuid="a"} 9223372036854775794', {"uuid": "a"}, 9.223372036854775794e18),
        (r'up{pod="q\"b\\s\n"} 1', {"pod": 'q"b\\s\n'}, 1.0),
        ('up{pod="a}b{c"} 1', {"pod": "a}b{c"}, 1.0),
        ('up{pod="a}b",uuid="c"} 1', {"pod": "a}b", "uuid": "c"}, 1.0),
        ('up{pod="é"} 1', {"pod": "é"}, 1.0),
        ('up{uuid="a"} 1 # {trace_id="x"} 0.5', {"uuid": "a"}, 1.0),
        ('up{uuid=""} 1', {}, 1.0),
        ('up{other="a"} 1', {}, 1.0),
        ('up{"uuid"="a"} 1', {"uuid": "a"}, 1.0),
        ('{"up","uuid"="a"} 7', {"uuid": "a"}, 7.0),
    ],
)
def test_forms_of_a_line(line, labels, value):
    assert said(read(line + "\n")) == [("up", labels, None, value)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('up{pod="a"b"} 1', "labels cannot be read"),
        ('up{uuid="a" 1', "not a sample"),
        ('up{uuid="a"}', "not a sample"),
        ('up{uuid="a"} ERROR - FAILED TO CONVERT TO STRING', "value is not a number"),
        ('up{uuid="a"} 1 2 3', "value is not a number"),
        ('up{uuid="a"} 1}', "value is not a number"),
        ("up 1}", "value is not a number"),
        ('up{uuid="a"} 1 99999999999999999', "time is not a valid timestamp"),
        ('up{uuid="a"} 1 -5', "time is not a valid timestamp"),
        ('9up{uuid="a"} 1', "name of a metric"),
        ('{uuid="a"} 1', "name of a metric"),
        ("garbage", "not a sample"),
        ('up{pod="' + "x" * HEAD_MAX_BYTES + '"} 1', "longer than"),
    ],
)
def test_a_bad_line_costs_only_itself(line, why):
    found = read(f'up{{uuid="a"}} 1\n{line}\nup{{uuid="b"}} 2\n')

    assert [value for *_, value in said(found)] == [1.0, 2.0]
    (reject,) = found.rejects
    assert reject.line == 2
    assert why in reject.reason
    assert reject.content == line[:500]


def test_bytes_that_are_no_text_cost_nothing_else():
    found = read(b'up{pod="\xff"} 1\nup{pod="b"} 2\n\xff\xfe\n')

    pods = {labels["pod"]: value for _, labels, _, value in said(found)}
    assert pods == {"b": 2.0, "\ufffd": 1.0}
    assert [reject.line for reject in found.rejects] == [3]


def test_a_line_may_say_its_time_in_ms_or_as_openmetrics_in_seconds():
    found = read('up{uuid="a"} 1 1795177770500\nup{uuid="a"} 2 1795177771.5\n# EOF\n')

    assert [(ts, value) for _, _, ts, value in said(found)] == [
        (datetime(2026, 11, 20, 12, 29, 30, 500_000), 1.0),
        (datetime(2026, 11, 20, 12, 29, 31, 500_000), 2.0),
    ]


def test_a_mark_dates_the_lines_after_it_and_says_who_was_asked():
    found = read(
        'up{uuid="a"} 1\n'
        "# scraped_at 2026-11-20T12:00:00Z http://n1:9400/metrics\n"
        'up{uuid="b"} 2\n'
        "# scraped_at 2026-11-20T13:00:30+01:00 http://me:secret@n2:9400/metrics\n"
        'up{uuid="c"} 3\n'
        'up{uuid="d",instance="n3:1"} 4\n'
        'up{uuid="e"} 5 1795177770500\n'
    )

    assert [(labels.get("instance"), ts, value) for _, labels, ts, value in said(found)] == [
        (None, None, 1.0),
        ("n1:9400", datetime(2026, 11, 20, 12), 2.0),
        ("n2:9400", datetime(2026, 11, 20, 12, 0, 30), 3.0),
        ("n3:1", datetime(2026, 11, 20, 12, 0, 30), 4.0),
        ("n2:9400", datetime(2026, 11, 20, 12, 29, 30, 500_000), 5.0),
    ]


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
    assert [reject.reason for reject in one.rejects] == [
        "the line does not begin with the name of a metric",
        "the line does not begin with the name of a metric",
        "the value is not a number",
    ]
    assert (one.series.height, one.lines) == (5, 13)


def small_blocks(monkeypatch, size, most=10_000):
    monkeypatch.setattr(exposition_blocks, "BLOCK_BYTES", size)
    monkeypatch.setattr(exposition_blocks, "BLOCK_MAX_BYTES", most)


SCRAPES = b"".join(
    b"# scraped_at 2026-11-20T12:%02d:00Z http://n1/\n" % minute
    + b"".join(b'up{uuid="%d"} %d\n' % (gpu, minute) for gpu in range(minute % 5 + 1))
    for minute in range(60)
)


@pytest.mark.parametrize("size", [64, 200, 400, 1000, 100_000])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_is_cut_between_scrapes(tmp_path, monkeypatch, size, *, is_packed):
    small_blocks(monkeypatch, size)
    path = tmp_path / "scrapes.prom"
    path.write_bytes(gzip.compress(SCRAPES) if is_packed else SCRAPES)

    found = [block.data for block in blocks(path)]

    assert b"".join(found) == SCRAPES
    assert all(data.startswith(b"# scraped_at") for data in found)
    assert len(found) > 1 or size == 100_000


def test_a_packed_file_that_was_cut_gives_what_came_before(tmp_path):
    path = tmp_path / "scrapes.prom.gz"
    path.write_bytes(gzip.compress(SCRAPES)[:-20])

    found = list(blocks(path))

    assert SCRAPES.startswith(found[-1].data)
    assert "cut or damaged" in found[-1].damage


@pytest.mark.parametrize("is_packed", [False, True])
def test_one_huge_scrape_is_refused_not_read_into_memory(tmp_path, monkeypatch, *, is_packed):
    small_blocks(monkeypatch, 400, most=2000)
    path = tmp_path / "scrapes.prom"
    data = b'up{uuid="a"} 1\n' * 1000
    path.write_bytes(gzip.compress(data) if is_packed else data)

    with pytest.raises(IngestError, match="without a line that begins '# scraped_at'"):
        list(blocks(path))

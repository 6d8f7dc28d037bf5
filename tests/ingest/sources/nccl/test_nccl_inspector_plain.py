"""Plain records read at once, by their layout: they say what they say line by line."""

import copy
import json
import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ingest.golden_cases import golden_path
from tests.tables import each

from goodput_ingest.formats.json_text.json_layout import layout_of
from goodput_ingest.sources.nccl import inspector_plain, inspector_records
from goodput_ingest.sources.nccl.inspector_plain import PATHS, flat

FILE = golden_path("nccl_inspector/every_form_of_a_record/input.log")
RECORDED = json.loads(FILE.read_text().partition("\n")[0])
RECORD = {name: RECORDED[name] for name in ("header", "metadata")}
FIELDS = {
    name.removeprefix("coll"): value
    for name, value in RECORDED["coll_perf"].items()
    if not name.startswith("event")
} | {"_msg_size_bytes": 2**64 - 1_000_000, "_algobw_gbs": 222.222222, "_busbw_gbs": 0.1}
EVENTS = [{"kernel_start_ts": 1_795_175_064_708_979 - n, "kernel_stop_ts": 9 + n} for n in range(3)]
PLACES = st.sampled_from([
    *((part, name) for part in ("header", "metadata") for name in RECORD[part]),
    *(("coll_perf", f"coll{name}") for name in FIELDS),
    ("header", "of a later version"), ("coll_perf", "event_trace_ts"), ("header", ""),
])  # fmt: skip
RAW = st.one_of(
    st.integers().map(str), st.floats().map(json.dumps),
    st.text(max_size=8).map(lambda text: f'"{text}"'),
    st.text(max_size=300).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from([
        *("null", "true", "007", "+1", "-0", "1.", ".5", "1e3", "1E400", "5.0", "1_0", " 7 "),
        *("18446744073709551616", "9223372036854775808", "-1", "1e-400", "NaN", "Infinity"),
        *("", "x", '"', "}}", "1}", "{}", "[]", "[1]", '{"x":1}', '"a":1', '1,"rank":7'),
        *('""', '"a,b"', '"a:b"', '"nan"', '"inf"', '"\x7f"', '"\x00"', '"\ufffd"', "\u0661"),
        '"' + "x" * 300 + '"']),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _few_lines_are_many(monkeypatch):
    monkeypatch.setattr(inspector_plain, "BYTES_MIN", 0)


def record(kind="coll", **changes):
    performance = {f"{kind}{name}": value for name, value in FIELDS.items()} | changes
    return copy.deepcopy(RECORD) | {f"{kind}_perf": performance}


def text(whole):
    return json.dumps(whole, separators=(",", ":")).encode()


def is_read_alike(lines):
    """Say whether lines are read alike by their layout, by their types and field by field."""
    numbered = list(enumerate(lines, 11))
    by_field = [inspector_records._one(x) | {"line": n} for n, x in numbered if x.strip()]
    by_type = inspector_records.read(lines, [number for number, _ in numbered])
    return flat(b"".join(line + b"\n" for line in lines), 11).equals(by_type) and by_type.equals(
        pl.DataFrame(by_field, schema=inspector_records.FLAT)
    )


@pytest.mark.slow
@settings(max_examples=120, deadline=None, derandomize=True)
@given(PLACES, RAW)
def test_whatever_stands_in_one_place_is_read_as_line_by_line(place, raw):
    whole = record()
    whole[place[0]][place[1]] = "here it stands"
    line = text(whole).replace(b'"here it stands"', raw.encode("utf-8", "surrogatepass"))

    assert is_read_alike([text(record()), *line.split(b"\n"), text(record(coll_sn=1))])
    assert is_read_alike([*line.split(b"\n"), text(record(coll_sn=1))])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=2)), max_size=4))
def test_bytes_that_were_changed_are_read_as_line_by_line(edits):
    line = text(record())
    for at, new in edits:
        line = line[:at] + new + line[at + 1 :]
    assert is_read_alike([text(record()), *line.split(b"\n"), text(record(coll_sn=1))])


def test_lines_of_several_layouts_stay_in_their_order():
    rng = random.Random(1)  # noqa: S311 -- no secret
    without_name = record()
    del without_name["header"]["comm_name"]
    kinds = [
        *(text(record()), text(record("p2p", p2p_peer=3)), text(without_name), text(RECORD)),
        json.dumps(record()).encode(),  # blanks behind commas and colons
        *(text(record(coll_algobw_gbs="nan")), text(record(coll="a,b"))),
        text(record(event_trace_ts={"coll_start_ts": 5, "kernel_events": []})),
        text(record(event_trace_ts={"coll_start_ts": 5, "kernel_events": EVENTS})),
        text(record(event_trace_ts={"kernel_events": [*EVENTS, {"kernel_start_ts": None}]})),
        *(text(record(coll_msg_size_bytes=size)) for size in (2**64, 10**150)),
        *(text(record()) + b"\r", text(record())[:99], b"", b"  ", b"NCCL INFO, something else"),
    ]

    assert is_read_alike([rng.choice(kinds) for _ in range(500)])


@each(b",", b",,", b",\r", b", ", b",\r\r", b"\r", b" \r", b"}", b"\x00")
def test_what_stands_behind_a_record_is_read_as_line_by_line(end):
    assert is_read_alike([text(record()), text(record()) + end, text(record(coll_sn=1))])
    assert is_read_alike([text(record()) + end, text(record())])


@pytest.mark.parametrize("lines", [[], [b""], [b"", b"", b""]])
def test_without_a_record_there_is_no_row(lines):
    assert flat(b"".join(line + b"\n" for line in lines), 1).is_empty()


def test_plain_records_have_a_layout():
    assert layout_of(text(record()), PATHS)
    assert layout_of(json.dumps(record()).encode(), PATHS)


@each(
    *(b"", b"5", b"[1,2]", b'{"a":1,"a":2}', b'{"a":{"x":1},"a":{"y":2}}', b'{"a":{}}', b'{"a":1'),
    *(b'{"a":[1],"b":2}', b'{"a":"b,c"}', b'{"a":"b\\u0041"}', b'{"a\\u0041":1}'),
    *(b'{"header":5}', b'{"header":{"id":{"x":1}}}'),
)
def test_other_lines_have_none(line):
    assert layout_of(line, PATHS) is None

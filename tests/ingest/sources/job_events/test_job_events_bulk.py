"""Job events, in bulk or line by line: the same rows, and what is cut, capped or refused."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.ingest.golden_cases import golden_path
from tests.tables import each

from goodput_ingest.formats import files
from goodput_ingest.formats.files import LINE_MAX_BYTES
from goodput_ingest.formats.json_text import event_lines
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_events import bulk as job_events_bulk
from goodput_ingest.sources.job_events import fields
from goodput_ingest.sources.job_events.job_events import JobEvents
from goodput_queries.errors import IngestError

STEP = {"v": 1, "ts": 1787234549.25, "event": "step", "step": 401, "dur_s": 10.02}
NUMBERS = st.one_of(
    st.integers(-1, 3), st.integers(-(2**70), 2**70), st.floats(), st.floats(0, 5e6),
    st.sampled_from(["7", True, None, [1], {"a": 1}]),
)  # fmt: skip
ODD_TEXTS = (
    *('a"b', "a\\b", "[rank3]: x", "{}", "x" * 300, "\x7f", "null", ":", ":x", "é\u2028"),
    *(7, None, True),
)
TEXTS = st.text(max_size=4) | st.sampled_from(ODD_TEXTS)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(fields.TEXTS, TEXTS), **dict.fromkeys(fields.WHOLES, NUMBERS),
        **dict.fromkeys((*fields.DURATIONS, *fields.AMOUNTS), NUMBERS),
        "event": st.sampled_from([*fields.EVENTS, "other", None, 1]),
        "v": st.sampled_from([1, 1.0, 2, "1", True]),
        "ts": st.one_of(NUMBERS, st.floats(1.7e9, 1.8e9), st.just("2026-08-20T14:02:29Z")),
        **dict.fromkeys(("loss", ":", "a :b"), NUMBERS), 'a"b': TEXTS},
)  # fmt: skip
ODD_LINES = (
    *("", "  ", "[1]", "7", "null", "{}", "3: " + json.dumps(STEP), json.dumps(STEP) * 2),
    '{"v":1,"ts":1,"event":"job.end" : 1,"x":0,"run_id":7}',
)
LINES = st.one_of(
    st.builds(lambda more: json.dumps({**STEP, **more}), FIELDS),
    st.builds(
        lambda more, colon: json.dumps(
            {**STEP, **more}, ensure_ascii=False, separators=(",", colon)),
        FIELDS, st.sampled_from([":", ": ", " : ", " :", "\t: "])),
    st.builds(lambda more: json.dumps(STEP)[:-1] + "," + json.dumps(more)[1:], FIELDS),  # twice
    st.builds(lambda at: json.dumps(STEP)[:at], st.integers(0, 90)),  # cut
    st.builds(
        lambda at, char: json.dumps(STEP)[:at] + char + json.dumps(STEP)[at + 1 :],
        st.integers(0, 90), st.sampled_from('{}[]",:0.eE- \t\r\x00\x7f\\ tn\ud800')),
    st.sampled_from(ODD_LINES),
)  # fmt: skip


@given(st.lists(LINES, min_size=1, max_size=12))
def test_lines_parsed_in_bulk_are_those_parsed_one_by_one(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "events.jsonl"
    text = "\n".join([json.dumps(STEP), *lines])
    path.write_bytes(text.encode("utf-8", "surrogatepass"))

    source = JobEvents(path, ReadOptions(cluster="lab"))
    (at_once,), (part,) = source.extract(), files.parts(path)
    singly = event_lines.batch(part, path, source.name, source._rows, "job_events", "lab")

    assert_frame_equal(at_once.rows, singly.rows, check_exact=True)
    assert at_once.rejects == singly.rejects
    assert at_once.digest == singly.digest


def step(**more):
    return json.dumps({**STEP, **more}, ensure_ascii=False)


PLAIN = {"run_id": "r", "attempt": 0, "rank": 3, "host": "n1", "data_s": 0, "kind": "é"}


# what it shows: lines, numbers of those that are parsed in bulk
@each({
    "plain lines": ([step(), step(**PLAIN), step(step=2**62)], [0, 1, 2]),
    "those beside odd lines": (
        [step(), step(msg="a\\b"), step(x=math.nan), step(rank=[]), step(lr=1), step()], [0, 5]),
    "those in other blocks than a line that is no JSON": (
        [*[step()] * 4, step()[:-9], *[step()] * 3], [0, 1, 2, 3, 6, 7]),
})  # fmt: skip
def test_lines_that_are_parsed_in_bulk(monkeypatch, lines, parsed):
    monkeypatch.setattr(job_events_bulk, "BLOCK_LINES", 2)
    part = files.Part(1, files.with_ends(line.encode() for line in lines), "")

    found = job_events_bulk.events_of(part, fields.REQUIRED, "job-events", "lab")

    assert found["line"].to_list() == parsed


HALF = "\ud800"  # of a character
MANY = {f"label{number}": "x" * 100 for number in range(1000)}
TOO_LONG = ("select reason from raw.rejects", [("the line is longer than 16 MiB",)])
CUT = """select json_array_length(extra, '$.names') from raw.job_events
    where extra ->> '$.cut' = 'true'"""


# what it shows: more fields of a step, what is read of it
@each({
    "a field of half a character": ({HALF: f"{HALF} and 100 %\x00"}, "from raw.rejects", []),
    "many such fields": (
        {f"{n}{HALF}": f"{HALF} and 100 %\x00" for n in range(1000)}, "from raw.rejects", []),
    "too many fields are cut and named": (MANY, CUT, [(50,)]),
    "a line without end": ({"note": "x" * LINE_MAX_BYTES}, *TOO_LONG),
    "long texts": (
        {"msg": "x" * 10**6, "run_id": "r" * 10**4},
        "select max(length(msg)), max(length(run_id)) from raw.job_events", [(2000, 200)]),
})  # fmt: skip
def test_what_a_line_has_too_much_of(store, read_text, more, sql, expected):
    summary = read_text("job-events", f"{json.dumps(STEP | more)}\n{step(step=402)}\n")
    assert (summary.rows, summary.rejects) == ((1, 1) if "note" in more else (2, 0))
    assert store.read(sql).rows() == expected


def test_an_array_of_goodput_events_that_is_cut_is_refused(read_text):
    pytest.importorskip("goodput_formats_extra")
    whole = golden_path("goodput_events/cloud_logging_array/input.json").read_text()
    with pytest.raises(IngestError, match="the JSON array cannot be read"):
        read_text("goodput-events", whole[:-20], "export.json")

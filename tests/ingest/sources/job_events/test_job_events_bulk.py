"""Job events, in bulk or line by line: the same rows, and what is cut, capped or refused."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.ingest.golden_cases import GOLDEN

from goodput_ingest.formats import files
from goodput_ingest.formats.files import LINE_MAX_BYTES
from goodput_ingest.formats.json_text import event_lines
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_events import bulk as job_events_bulk
from goodput_ingest.sources.job_events import job_events
from goodput_ingest.sources.job_events.job_events import JobEvents
from goodput_queries.errors import IngestError

STEP = {"v": 1, "ts": 1787234549.25, "event": "step", "step": 401, "dur_s": 10.02}
NUMBERS = st.one_of(
    st.integers(-1, 3),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.floats(0, 5e6),
    st.sampled_from(["7", True, None, [1], {"a": 1}]),
)
ODD_TEXTS = (
    *('a"b', "a\\b", "[rank3]: x", "{}", "x" * 300, "\x7f", "null", ":", ":x", "é\u2028"),
    *(7, None, True),
)
TEXTS = st.text(max_size=4) | st.sampled_from(ODD_TEXTS)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(job_events_bulk.TEXTS, TEXTS),
        **dict.fromkeys(job_events_bulk.WHOLES, NUMBERS),
        **dict.fromkeys((*job_events_bulk.DURATIONS, *job_events_bulk.AMOUNTS), NUMBERS),
        "event": st.sampled_from([*job_events.EVENTS, "other", None, 1]),
        "v": st.sampled_from([1, 1.0, 2, "1", True]),
        "ts": st.one_of(NUMBERS, st.floats(1.7e9, 1.8e9), st.just("2026-08-20T14:02:29Z")),
        **dict.fromkeys(("loss", ":", "a :b"), NUMBERS),
        'a"b': TEXTS,
    },
)
ODD_LINES = (
    *("", "  ", "[1]", "7", "null", "{}", "3: " + json.dumps(STEP), json.dumps(STEP) * 2),
    '{"v":1,"ts":1,"event":"job.end" : 1,"x":0,"run_id":7}',
)
LINES = st.one_of(
    st.builds(lambda more: json.dumps({**STEP, **more}), FIELDS),
    st.builds(
        lambda more, colon: json.dumps(
            {**STEP, **more}, ensure_ascii=False, separators=(",", colon)
        ),
        FIELDS,
        st.sampled_from([":", ": ", " : ", " :", "\t: "]),
    ),
    st.builds(lambda more: json.dumps(STEP)[:-1] + "," + json.dumps(more)[1:], FIELDS),  # twice
    st.builds(lambda at: json.dumps(STEP)[:at], st.integers(0, 90)),  # cut
    st.builds(
        lambda at, char: json.dumps(STEP)[:at] + char + json.dumps(STEP)[at + 1 :],
        st.integers(0, 90),
        st.sampled_from('{}[]",:0.eE- \t\r\x00\x7f\\ tn\ud800'),
    ),
    st.sampled_from(ODD_LINES),
)


def only(path):
    (batch,) = JobEvents(path, ReadOptions(cluster="lab")).extract()
    return batch


def one_by_one(path):
    source = JobEvents(path, ReadOptions(cluster="lab"))
    (part,) = files.parts(path)
    return event_lines.batch(part, path, source.name, source._rows, "job_events", "lab")


@given(st.lists(LINES, min_size=1, max_size=12))
def test_lines_parsed_in_bulk_are_those_parsed_one_by_one(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "events.jsonl"
    text = "\n".join([json.dumps(STEP), *lines])
    path.write_bytes(text.encode("utf-8", "surrogatepass"))

    at_once, singly = only(path), one_by_one(path)

    assert_frame_equal(at_once.rows, singly.rows, check_exact=True)
    assert at_once.rejects == singly.rejects
    assert at_once.digest == singly.digest


def bulk(*lines):
    part = files.Part(1, files.with_ends(line.encode() for line in lines), "")
    return job_events_bulk.events_of(part, job_events.REQUIRED, "job-events", "lab")


def test_plain_lines_are_parsed_in_bulk():
    whole = {**STEP, "run_id": "r", "attempt": 0, "rank": 3, "host": "n1", "data_s": 0, "kind": "é"}

    reported = bulk(
        json.dumps(STEP), json.dumps(whole, ensure_ascii=False), json.dumps({**STEP, "step": 2**62})
    )

    assert reported["line"].to_list() == [0, 1, 2]


def test_an_odd_line_leaves_its_neighbours_parsed():
    odd = [
        json.dumps({**STEP, **more}) for more in ({"msg": "a\\b"}, {"x": math.nan}, {"rank": []})
    ]

    reported = bulk(json.dumps(STEP), *odd, json.dumps({**STEP, "lr": 1}), json.dumps(STEP))

    assert reported["line"].to_list() == [0, 5]


def test_a_line_that_is_no_json_leaves_other_blocks_parsed(monkeypatch):
    monkeypatch.setattr(job_events_bulk, "BLOCK_LINES", 2)

    reported = bulk(*[json.dumps(STEP)] * 4, json.dumps(STEP)[:-9], *[json.dumps(STEP)] * 3)

    assert reported["line"].to_list() == [0, 1, 2, 3, 6, 7]


@pytest.fixture
def read(read_text):
    """Return what reads these events."""
    return lambda *events: read_text(
        "job-events", "".join(json.dumps(event) + "\n" for event in events)
    )


def reasons(store):
    return [r for (r,) in store.read("select reason from raw.rejects order by line").rows()]


@pytest.mark.parametrize("count", [1, 1000])
def test_an_unknown_field_that_is_half_a_character_is_kept_as_far_as_it_goes(read, count):
    fields = {f"{i}\ud800": "\ud800 and 100 %\x00" for i in range(count)}

    summary = read({**STEP, **fields})

    assert (summary.rows_new, summary.rejects) == (1, 0)


def test_too_many_unknown_fields_are_cut_and_named(store, read):
    read({**STEP, **{f"label{i}": "x" * 100 for i in range(1000)}})

    extra = json.loads(store.read("select extra from raw.job_events").item())
    assert extra["cut"] is True
    assert len(extra["names"]) == 50


def test_a_line_without_end_is_rejected_as_too_long(store, read):
    assert read({**STEP, "note": "x" * LINE_MAX_BYTES}, STEP).rows == 1
    assert reasons(store) == ["the line is longer than 16 MiB"]


def test_long_texts_are_capped(store, read):
    read({**STEP, "msg": "x" * 10**6, "run_id": "r" * 10**4})

    found = store.read("select length(msg), length(run_id) from raw.job_events").row(0)
    assert found == (2000, 200)


def test_an_array_of_goodput_events_that_is_cut_is_refused(read_text):
    whole = (GOLDEN / "goodput_events/cloud_logging_array/input.json").read_text()

    with pytest.raises(IngestError, match="the JSON array cannot be read"):
        read_text("goodput-events", whole[:-20], "export.json")

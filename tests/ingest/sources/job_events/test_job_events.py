import json

import pytest
from tests.ingest.golden_cases import GOLDEN

from goodput_ingest.formats.files import LINE_MAX_BYTES
from goodput_queries.errors import IngestError

STEP = {"v": 1, "ts": 1787234549.25, "event": "step", "step": 401, "dur_s": 10.02}


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


def test_a_file_that_is_one_cut_line_is_no_error(read_text):
    assert read_text("job-events", '{"v": 1, "t').rejects == 1


def test_an_array_of_goodput_events_that_is_cut_is_refused(read_text):
    whole = (GOLDEN / "goodput_events/cloud_logging_array/input.json").read_text()

    with pytest.raises(IngestError, match="the JSON array cannot be read"):
        read_text("goodput-events", whole[:-20], "export.json")

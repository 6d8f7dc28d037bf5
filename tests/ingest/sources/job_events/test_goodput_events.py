import json

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.errors import IngestError

T0 = 1_787_234_400.0


def step(number, at_s):
    return {"step_count": number, "step_start_time": T0 + at_s}


def entries(*said):
    return [
        {"insertId": str(i), "jsonPayload": {"job_name": "run7", **s}} for i, s in enumerate(said)
    ]


def test_an_array_that_is_cut_is_refused(store, tmp_path):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(entries(step(401, 10), step(400, 0)))[:-20])

    with pytest.raises(IngestError, match="the JSON array cannot be read"):
        ingest(store, "goodput-events", [path], ReadOptions())


@pytest.mark.parametrize("order", [1, -1], ids=["oldest first", "latest first"])
def test_a_save_without_a_jobs_name_belongs_to_the_job_of_its_file(store, tmp_path, order):
    restore = {"checkpointer_start_time": T0 + 1, "checkpointer_duration_secs": 2.0}
    path = tmp_path / "goodput.jsonl"
    lines = [{"job_name": "run7", "job_start_time": T0}, {"event_type": "restore", **restore}]
    path.write_text("".join(json.dumps(s) + "\n" for s in lines[::order]))

    ingest(store, "auto", [path], ReadOptions())

    assert store.read("select distinct run_id from raw.job_events").rows() == [("run7",)]


def test_a_damaged_first_line_is_rejected_and_the_others_are_read(store, tmp_path):
    path = tmp_path / "goodput.jsonl"
    good = json.dumps({"job_name": "run7", **step(1, 10)})
    path.write_bytes(b'{"job_name": "r\x03n7", "job_start_time": 1787234431.0}\n' + good.encode())

    summary = ingest(store, "goodput-events", [path], ReadOptions())

    assert (summary.failed, summary.rejects) == ([], 1)
    assert store.read("select count(*) from raw.job_events").item() == 1

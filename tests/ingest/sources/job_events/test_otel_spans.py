import json

from goodput_ingest.formats import files
from goodput_ingest.sources.job_events.otel_spans import OtelSpans


def test_spans_of_other_programs_are_not_recognised(tmp_path):
    path = tmp_path / "spans.jsonl"
    times = {"start_time": "2026-08-20T14:03:07Z", "end_time": "2026-08-20T14:03:11.5Z"}
    span = {"name": "GET /index.html", **times, "resource": {"attributes": {"nemo.run.id": "run7"}}}
    path.write_text(json.dumps(span) + "\n")

    assert not OtelSpans.recognises(path, files.head(path))

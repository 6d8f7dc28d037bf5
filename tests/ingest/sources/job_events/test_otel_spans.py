import json

from goodput_ingest.formats import files
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_events.otel_spans import OtelSpans

RESOURCE = {"nemo.run.id": "run7", "service.instance.id": "run7-rank31", "host.name": "node004"}
FIRST = {"start_time": "2026-08-20T14:03:07Z", "end_time": "2026-08-20T14:03:11.5Z"}


def sdk(name, **fields):
    return {"name": name, **FIRST, "resource": {"attributes": RESOURCE}, **fields}


def ingested(store, folder, *lines):
    path = folder / "spans.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ingest(store, "auto", [path], ReadOptions())
    return store.read("from raw.job_events order by ts, event").rows(named=True)


def test_a_save_is_durable_when_it_is_final_not_when_it_unblocked(store, tmp_path):
    save = sdk("megatron.checkpoint.exposed_save", attributes={"megatron.iteration": 400})
    final = sdk("megatron.checkpoint.save.finalize", end_time="2026-08-20T14:05:00Z")

    unblocked = ingested(store, tmp_path, save)
    durable = [e for e in ingested(store, tmp_path, save, final) if e["event"] == "ckpt.durable"]

    assert [e["event"] for e in unblocked] == ["phase"]
    assert [(e["step"], str(e["ts"])) for e in durable] == [(400, "2026-08-20 14:05:00")]


def test_spans_of_other_programs_are_not_recognised(tmp_path):
    path = tmp_path / "spans.jsonl"
    path.write_text(json.dumps(sdk("GET /index.html")) + "\n")

    assert not OtelSpans.recognises(path, files.head(path))

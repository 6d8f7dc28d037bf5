from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from goodput_ingest.formats import files
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_events.otel_spans import OtelSpans

if TYPE_CHECKING:
    from goodput_queries.storage.store import LocalStore

RESOURCE = {"nemo.run.id": "run7", "service.instance.id": "run7-rank31", "host.name": "node004"}
FIRST = {"start_time": "2026-08-20T14:03:07Z", "end_time": "2026-08-20T14:03:11.5Z"}
T0_NS = 1_787_234_587_000_000_000  # FIRST's start


def sdk(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **FIRST, "resource": {"attributes": RESOURCE}, **fields}


def otlp(name: str, attributes: dict[str, int], **fields: Any) -> dict[str, Any]:
    def listed(pairs: dict[str, Any]) -> list[dict[str, Any]]:
        kinds = {int: "intValue", str: "stringValue"}
        return [{"key": k, "value": {kinds[type(v)]: str(v)}} for k, v in pairs.items()]

    span = {
        "name": name,
        "startTimeUnixNano": str(T0_NS),
        "endTimeUnixNano": str(T0_NS + 4_500_000_000),
        "attributes": listed(attributes),
        **fields,
    }
    scoped = {"resource": {"attributes": listed(RESOURCE)}, "scopeSpans": [{"spans": [span]}]}
    return {"resourceSpans": [scoped]}


def ingested(store: LocalStore, folder: Path, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    path = folder / "spans.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ingest(store, "auto", [path], ReadOptions())
    return store.read("from raw.job_events order by ts, event").rows(named=True)


@pytest.mark.parametrize("name", ["megatron.train.iteration", "megatron.train_step"])
@pytest.mark.parametrize("form", ["sdk", "otlp"])
def test_an_iteration_is_a_step_in_either_form_and_under_either_name(
    store: LocalStore, tmp_path: Path, form: str, name: str
) -> None:
    attributes = {"megatron.iteration": 401}
    line = sdk(name, attributes=attributes) if form == "sdk" else otlp(name, attributes)

    (event,) = ingested(store, tmp_path, line, sdk("megatron.other"))

    assert (event["event"], event["step"], event["dur_s"]) == ("step", 401, 4.5)
    assert str(event["ts"]) == "2026-08-20 14:03:11.500000"
    assert (event["run_id"], event["rank"], event["host"]) == ("run7", 31, "node004")


def test_a_broken_span_of_a_request_costs_no_other_span(store: LocalStore, tmp_path: Path) -> None:
    request = otlp("megatron.train.iteration", {"megatron.iteration": 401})
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[:0] = [spans[0] | {"endTimeUnixNano": "soon"}, spans[0] | {"attributes": []}]

    found = ingested(store, tmp_path, request)

    assert [event["step"] for event in found] == [401]
    assert sorted(store.read("select line, reason from raw.rejects").rows()) == [
        (1, "a span megatron.train.iteration without megatron.iteration"),
        (1, "endTimeUnixNano is not a number of nanoseconds since 1970"),
    ]


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("megatron.startup.model_init", "init"),
        ("megatron.startup.dataloader", "init"),
        ("megatron.checkpoint.load", "restore"),
        ("megatron.checkpoint.exposed_save", "ckpt_save"),
        ("megatron.evaluate", "eval"),
        ("nvrx.restart.rendezvous", "init"),
    ],
)
def test_spans_are_phases_in_the_ledgers_words(
    store: LocalStore, tmp_path: Path, name: str, phase: str
) -> None:
    (event,) = ingested(store, tmp_path, sdk(name))

    assert (event["event"], event["phase"], event["dur_s"]) == ("phase", phase, 4.5)


def test_a_save_is_durable_when_it_is_final_not_when_it_unblocked(
    store: LocalStore, tmp_path: Path
) -> None:
    save = sdk("megatron.checkpoint.exposed_save", attributes={"megatron.iteration": 400})
    final = sdk("megatron.checkpoint.save.finalize", end_time="2026-08-20T14:05:00Z")

    unblocked = ingested(store, tmp_path, save)
    durable = [e for e in ingested(store, tmp_path, save, final) if e["event"] == "ckpt.durable"]

    assert [e["event"] for e in unblocked] == ["phase"]
    assert [(e["step"], str(e["ts"])) for e in durable] == [(400, "2026-08-20 14:05:00")]


def test_a_span_that_failed_is_a_failure_too(store: LocalStore, tmp_path: Path) -> None:
    status = {"status_code": "ERROR", "description": "RuntimeError: NCCL error"}

    events = ingested(store, tmp_path, sdk("megatron.evaluate", status=status))

    assert [(e["event"], e["kind"], e["msg"]) for e in events] == [
        ("failure", "exception", "RuntimeError: NCCL error"),
        ("phase", None, None),
    ]


@pytest.mark.parametrize(
    "line",
    [
        sdk("megatron.train.iteration"),
        sdk("megatron.evaluate", end_time="2026-08-20T14:03:00Z"),
        sdk("megatron.evaluate", end_time="2027-08-20T14:03:00Z"),
        sdk("megatron.evaluate", start_time="2026-08-20T14:03:07"),
        otlp("megatron.evaluate", {}, endTimeUnixNano="soon"),
        otlp("megatron.evaluate", {}, startTimeUnixNano=2**80),
    ],
)
def test_a_broken_span_is_rejected(store: LocalStore, tmp_path: Path, line: dict[str, Any]) -> None:
    events = ingested(store, tmp_path, sdk("megatron.evaluate"), line)

    assert len(events) == 1
    assert store.read("select line from raw.rejects").item() == 2


def test_spans_of_other_programs_are_not_recognised(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text(json.dumps(sdk("GET /index.html")) + "\n")

    assert not OtelSpans.recognises(path, files.head(path))

"""Pages on an empty database and on part of the evidence, in-process."""

import json

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, sent, table, texts
from tests.recorded_session import built

from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.evidence.batch import Batch, Reject

NODE = pl.DataFrame({"cluster": ["lab"], "node": ["n1"], "source": ["csv"]})


@pytest.fixture(scope="module")
def telemetry(empty_database, tmp_path_factory):
    """Give a part of the evidence: telemetry alone, no job, no scheduler, no price."""
    yield from built(empty_database, tmp_path_factory, "nvml.jsonl.gz")


@pytest.fixture(scope="module")
def accounting(empty_database, tmp_path_factory):
    """Give a part of the evidence: accounting alone, no telemetry, no job event."""
    yield from built(empty_database, tmp_path_factory, "sacct.txt")


@pytest.fixture
def events_alone(store, tmp_path):
    """Give job events that name neither a host nor a GPU, built."""
    event = {"v": 1, "ts": 1_790_000_000, "event": "job.start", "run_id": "run7"}
    path = tmp_path / "job_events.jsonl"
    path.write_text(json.dumps(event) + "\n")
    ingest.ingest(store, "auto", [path], ReadOptions(cluster="lab"))
    store.build()
    return store


def test_rows_without_a_ledger_say_that_it_is_being_built(store, visit):
    store.load(Batch("nodes", NODE, "csv", "nodes.csv", "digest"))
    app = visit(store)
    assert "is being built" in app.info[0].value


def test_rows_that_name_no_gpu_say_what_to_read_in_as_well(events_alone, visit):
    app = visit(events_alone)
    assert "contain neither a GPU inventory nor a job" in app.info[0].value
    assert "goodput build" not in texts(app)


def test_the_runs_page_says_who_waited(accounting, visit):
    app = visit(accounting, "all_runs", waits="size")
    waits = app.dataframe[-1].value
    assert "2 to 8 GPUs" in waits["name"].to_list()
    assert waits["started"].sum() > 0


def test_the_data_page_says_how_exact_readings_are_and_why_rows_were_rejected(evidence, visit):
    evidence.node("a", 1)
    evidence.job("1", 0, 600, ["a"], 1)
    evidence.samples("a#0", evidence.every(-30, 600, 30), lambda second: not 120 < second <= 300)
    none = evidence.store.read("select * from raw.job_events limit 0")
    rejects = [Reject(line=7, reason="not JSON", content=HOSTILE)]
    evidence.store.load(Batch("job_events", none, "job-events", "x.jsonl", "digest", rejects))
    evidence.store.build()

    app = visit(evidence.store, "data_health")

    exact = (
        "readings at least every 30.0 s place 2 changes between active and idle to ± 1.0 GPU-min"
    )
    assert f"c: {exact}; idle time under 1m 30s may count as active." in texts(app)
    assert any("not JSON" in frame.value.to_csv() for frame in app.dataframe)


PARTS = {  # page of a part of the evidence: what it says, and shows to be typed
    ("store", "fleet_overview"): ((), ("goodput demo",)),
    ("accounting", "idle_gaps"): (("No telemetry in this window: gaps are not known.",), ()),
    ("accounting", "one_run"):
        (("Stragglers are not known", "Goodput (% of allocated): not measured"), ()),
    ("accounting", "power_and_carbon"):
        (("No power reading",),
         ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")),
    ("telemetry", "one_gpu"): (("Power",), ()),
    ("telemetry", "power_and_carbon"):
        ((), ("goodput ingest carbon carbon.csv", "goodput ingest inventory racks.csv")),
    ("telemetry", "model_serving"): ((), ('[[collect]]\nsource = "serving-metrics"',)),
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS, ids=" ".join)
def test_a_page_names_what_is_not_known_and_what_to_add(request, visit, part):
    said, codes = PARTS[part]
    store, params = request.getfixturevalue(part[0]), {}
    if part[1] in ("one_run", "one_gpu"):
        kind = part[1].removeprefix("one_")
        key = {"run": "run_key", "gpu": "gpu_uuid"}[kind]
        params[kind] = store.read(f"select {key} from marts.{kind}s order by all limit 1").item()

    app = visit(store, part[1], **params)

    shown = "\n".join(str(code.value) for code in app.code)
    assert all(text in texts(app) for text in said)
    assert all(text in shown for text in codes)
    assert app.get("plotly_chart") or part[1] != "one_gpu"


def test_telemetry_alone_has_no_price_and_no_carbon(telemetry, visit):
    assert "no price" in sent(visit(telemetry))
    assert "carbon_kg" not in table(visit(telemetry, "power_and_carbon"), "energy_kwh").columns


def test_without_sources_of_the_network_each_panel_says_what_to_enable(telemetry, visit):
    app = visit(telemetry, "links_and_bandwidth")
    assert texts(app).count("Not configured:") == 3
    lines = [code.value for code in app.code]
    for name in ("nccl-inspector", "node-exporter", "nccl-debug"):
        assert name in "".join(lines)
    assert lines[-1] == "goodput ingest nccl-tests FILE"
    assert not app.warning

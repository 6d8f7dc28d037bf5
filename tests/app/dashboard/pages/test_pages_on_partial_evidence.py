"""Pages on an empty database and on part of the evidence, in-process."""

import json

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, table, texts
from tests.app.page_elements import sent
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


def test_a_page_shows_the_first_run_on_an_empty_database(store, visit):
    app = visit(store)
    assert app.code[0].value == "goodput demo"
    assert len(app.code) == 3


def test_rows_without_a_ledger_say_that_it_is_being_built(store, visit):
    store.load(Batch("nodes", NODE, "csv", "nodes.csv", "digest"))
    app = visit(store)
    assert "is being built" in app.info[0].value


def test_rows_that_name_no_gpu_say_what_to_read_in_as_well(events_alone, visit):
    app = visit(events_alone)
    assert "contain neither a GPU inventory nor a job" in app.info[0].value
    assert "goodput build" not in texts(app)


def test_without_telemetry_gaps_are_not_known(accounting, visit):
    app = visit(accounting, "idle_gaps")
    assert app.info[0].value == "No telemetry in this window: gaps are not known."


def test_without_job_events_lateness_and_goodput_of_a_run_are_not_known(accounting, visit):
    run = accounting.read("select run_key from marts.runs limit 1").item()
    app = visit(accounting, "one_run", run=run)
    assert "Stragglers are not known" in texts(app)
    assert "Goodput (% of allocated): not measured" in texts(app)


def test_the_runs_page_says_who_waited(accounting, visit):
    app = visit(accounting, "all_runs", waits="size")
    waits = app.dataframe[-1].value
    assert "2 to 8 GPUs" in waits["name"].to_list()
    assert waits["started"].sum() > 0


def test_telemetry_alone_is_drawn_and_marked_as_partial(telemetry, visit):
    assert "no price" in sent(visit(telemetry))
    gpu = telemetry.read("select gpu_uuid from marts.gpus order by gpu_index limit 1").item()
    assert visit(telemetry, "one_gpu", gpu=gpu).get("plotly_chart")


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


def test_without_readings_the_energy_page_names_what_to_add(accounting, visit):
    app = visit(accounting, "power_and_carbon")
    codes = "\n".join(str(code.value) for code in app.code)
    assert "DCGM_FI_DEV_POWER_USAGE" in codes
    assert "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" in codes
    assert "No power reading" in texts(app)
    assert not app.get("plotly_chart")


def test_without_intensities_the_energy_page_shows_the_file_to_write(telemetry, visit):
    app = visit(telemetry, "power_and_carbon")
    codes = [str(code.value) for code in app.code]
    assert "goodput ingest carbon carbon.csv" in codes
    assert codes[-1] == "goodput ingest inventory racks.csv"  # nor does it know a power feed
    assert "carbon_kg" not in table(app, "energy_kwh").columns


def test_without_sources_of_the_network_each_panel_says_what_to_enable(telemetry, visit):
    app = visit(telemetry, "links_and_bandwidth")
    assert texts(app).count("Not configured:") == 3
    lines = [code.value for code in app.code]
    for name in ("nccl-inspector", "node-exporter", "nccl-debug"):
        assert name in "".join(lines)
    assert lines[-1] == "goodput ingest nccl-tests FILE"
    assert not app.warning


def test_a_site_without_engines_reads_the_source_and_the_lines(telemetry, visit):
    app = visit(telemetry, "model_serving")
    assert app.code[0].value.startswith('[[collect]]\nsource = "serving-metrics"')

"""Pages on an empty database, on part of the evidence and of a lake, in-process."""

import json
import re
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, sent, table, texts
from tests.queries.lake.conftest import START, readings
from tests.recorded_session import built

from goodput_app.dashboard.data.lake import READS_STORED
from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions
from goodput_lake.pull import attach
from goodput_lake.tables.lake import Lake
from goodput_queries.catalog import models
from goodput_queries.evidence.batch import Batch, Reject
from goodput_queries.ledger_build.lake import READINGS, LakeOptions


@pytest.fixture(scope="module")
def telemetry(filled, module_store):
    """Give a part of the evidence: telemetry alone, no job, no scheduler, no price."""
    return module_store(copy_of=built(filled, "nvml.jsonl.gz"))


@pytest.fixture(scope="module")
def accounting(filled, module_store):
    """Give a part of the evidence: accounting alone, no telemetry, no job event."""
    return module_store(copy_of=built(filled, "sacct.txt"))


def test_rows_without_a_ledger_say_that_it_is_being_built(evidence, visit):
    evidence.add("nodes", node="n1")
    app = visit(evidence.store)
    assert "is being built" in app.info[0].value
    assert not app.subheader, "no steps of a first run: after an upgrade the rows are there"


def test_rows_that_name_no_gpu_say_what_to_read_in_as_well(store, visit, tmp_path):
    event = {"v": 1, "ts": 1_790_000_000, "event": "job.start", "run_id": "run7"}
    (tmp_path / "events.jsonl").write_text(json.dumps(event) + "\n")
    ingest.ingest(store, "auto", [tmp_path / "events.jsonl"], ReadOptions(cluster="lab"))
    store.build()
    app = visit(store)
    assert "contain neither a GPU inventory nor a job" in app.info[0].value
    assert "goodput build" not in texts(app)


def test_the_runs_page_says_who_waited(accounting, visit):
    waits = visit(accounting, "all_runs", waits="size").dataframe[-1].value
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
        "Readings at least every 30.0 s place 2 changes between active and idle to ± 1.0 GPU-min"
    )
    assert f"c: {exact}; idle time under 1m 30s may count as active." in texts(app)
    assert "**What to do:** Let the job report its steps" in sent(app)
    assert any("not JSON" in frame.value.to_csv() for frame in app.dataframe)
    missing = set(table(app, "evidence", "shows", "pages")["evidence"])
    assert ("GPU readings" in missing, "Job events" in missing) == (False, True)


PARTS = {  # page of a part of the evidence: what it says, and shows to be typed
    ("store", "fleet_overview"):
        (("What each source shows, and where",), ("goodput demo",)),
    ("accounting", "idle_gaps"): (("No telemetry in this window: gaps are not known.",), ()),
    ("accounting", "one_run"):
        (("Stragglers are not known", "Goodput (% of allocated): not measured"), ()),
    ("accounting", "power_and_carbon"):
        ((), ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")),
    ("accounting", "power_and_carbon", "limits"): (("No power reading",), ()),
    ("telemetry", "one_gpu"): (("Power",), ()),
    ("telemetry", "power_and_carbon"): ((), ("goodput ingest carbon carbon.csv",)),
    ("telemetry", "power_and_carbon", "limits"): ((), ("goodput ingest inventory racks.csv",)),
    ("telemetry", "model_serving"): ((), ('[[collect]]\nsource = "serving-metrics"',)),
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS, ids=" ".join)
def test_a_page_names_what_is_not_known_and_what_to_add(request, visit, part):
    said, codes = PARTS[part]
    store, params = request.getfixturevalue(part[0]), {"part": part[2]} if part[2:] else {}
    if part[1] in ("one_run", "one_gpu"):
        kind = part[1].removeprefix("one_")
        key = {"run": "run_key", "gpu": "gpu_uuid"}[kind]
        params[kind] = store.read(f"select {key} from marts.{kind}s order by all limit 1").item()

    app = visit(store, part[1], **params)

    shown = "\n".join(str(code.value) for code in app.code)
    assert all(text in texts(app) for text in said)
    assert all(text in shown for text in codes)
    assert app.get("plotly_chart") or part[1] != "one_gpu"
    if part == ("telemetry", "power_and_carbon"):
        assert "carbon_kg" not in table(app, "energy_kwh").columns


def test_without_sources_of_the_network_each_panel_says_what_to_enable(telemetry, visit):
    app = visit(telemetry, "links_and_bandwidth")
    assert texts(app).count("Not configured:") == 3
    lines = [code.value for code in app.code]
    for name in ("nccl-inspector", "node-exporter", "nccl-debug"):
        assert name in "".join(lines)
    assert lines[-1] == "goodput ingest nccl-tests FILE"
    assert not app.warning


DAY_S = 86_400
LAKE = Path(__file__).parents[4] / "docs" / "lake.md"
IN_OTHERS = {"marts.allocated_samples"}  # the Run page then draws the roll-up


@pytest.fixture(scope="module")
def of_lake(module_store, tmp_path_factory):
    """Give a built database with four days of a GPU, which has the readings of two of them."""
    lake = Lake.create(str(tmp_path_factory.mktemp("lake")), cluster="west", buckets=1)
    gpu = {"source": "inventory", "cluster": "west", "node": "n", "gpu_uuid": "GPU-0"}
    lake.append(Batch("gpus", pl.DataFrame(gpu), "inventory", "inventory", "gpus"))
    lake.append(readings("d0", range(0, 3 * DAY_S, 600), gpus=1))
    found = module_store()
    found.lake_options = LakeOptions(recent_days=2)
    attach(found, lake.url)
    found.build()
    return found


def captions(visit, of_lake, page, day, **params):
    window = {"from": START + timedelta(days=day), "to": START + timedelta(days=day, hours=9)}
    app = visit(of_lake, page, **{name: f"{at:%FT%TZ}" for name, at in window.items()}, **params)
    return [one.value for one in app.caption]


def test_a_panel_says_which_readings_are_in_the_lake_only(visit, of_lake):
    """Power over time is drawn from the ten-minute roll-up and lacks nothing."""
    old, recent = (captions(visit, of_lake, "power_and_carbon", day, part="work") for day in (0, 2))
    said = [text for text in old if "Single readings before 2026-11-22" in text]
    assert len(said) == 1  # of work by power cap
    assert not any("in the lake" in text for text in recent)
    assert any("Means of 10m" in text for text in captions(visit, of_lake, "power_and_carbon", 0))
    said = captions(visit, of_lake, "data_health", 0)
    assert any(text.startswith("Loaded from the lake /") for text in said)


def test_the_views_that_lack_readings_are_listed():
    """Those that read them themselves; what reads these lacks as much."""
    staged = {m.qualified_name for m in models.of_layer("staging").values()}
    of_readings = {name for name in staged if models.evidence(name)[0] & set(READINGS)}
    lacking = {
        m.qualified_name
        for m in models.of_layer("marts").values()
        if not m.is_stored and set(m.reads) & of_readings
    }
    named = set(re.findall(r"`(\w+)`", LAKE.read_text()))
    missing = {name for name in lacking - READS_STORED - IN_OTHERS if name[6:] not in named}
    assert missing == set()

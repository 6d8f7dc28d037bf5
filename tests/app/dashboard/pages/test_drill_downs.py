"""From one page to the next, in-process: what a link opens, and where that page leads."""

import json

import pytest
from tests.app.opened_page import links, plain, texts
from tests.queries.conftest import Evidence, steps

from goodput_app.dashboard.components import charts
from goodput_app.dashboard.components.findings.finding_parts import fix_ids

MINUTE = {"from": "2026-11-20T12:31:00Z", "to": "2026-11-20T12:32:00Z"}
TIMES = {"from": "2027-01-15T08:00:00Z", "to": "2027-01-15T10:00:00Z"}


@pytest.fixture(scope="module")
def failed(new_store):
    """Give a run whose GPU has uncorrected ECC errors in the minutes before its end."""
    made = Evidence(new_store(), "e")
    made.load("gpus", [{"cluster": "e", "node": "n7", "gpu_uuid": "GPU-ecc", "gpu_index": 3,
                        "gpu_model": "h100", "valid_from_at": made.at(0)}])  # fmt: skip
    made.job("train", 2_000, 5_000, ["n7"], 1, "FAILED")
    made.events("train", steps(1, 29, 2_000, 100), host="n7")
    made.load("gpu_samples_other", [
        {"gpu_uuid": "GPU-ecc", "gpu_instance": "", "ts": made.at(4_600 + 60 * number),
         "metric": "ecc_uncorrected_volatile_total", "value": float(errors)}
        for number, errors in enumerate((0, 0, 2, 5))
    ])  # fmt: skip
    made.store.build()
    yield made.store
    made.store.close()


def test_the_top_fix_leads_to_its_findings_and_says_what_comes_back(capture, visit):
    fixes = capture.read("from marts.fixes where back_ms > 0 order by back_ms desc limit 1")
    fix = fix_ids(fixes).item()

    opened = links(visit(capture, "fleet_overview", fix=fix))["Open its findings"]

    assert opened["fix"] == [fix]
    shown = plain(visit(capture, "open_findings", fix=fix))
    assert "of this time range are recoverable, at least" in shown


def test_what_ran_on_a_node_in_a_minute_leads_to_the_run_in_that_minute(capture, visit):
    node = capture.read("select distinct node from marts.gpus").item()
    held = "select job_run_key from marts.gpu_allocations where run_key = 'lab/main' limit 1"

    app = visit(capture, "nodes_and_one", node=node, held=capture.read(held).item(), **MINUTE)

    (run,) = (params for label, params in links(app).items() if label.startswith("Open run"))
    assert (run["run"], run["from"]) == (["lab/main"], [MINUTE["from"]])


def test_a_late_rank_has_its_gpu_and_what_it_cost_the_others(capture, visit):
    charts_ = visit(capture, "one_run", run="lab/main").get("plotly_chart")

    drawn = "".join(chart.proto.spec for chart in charts_)
    assert "rank 1, vm GPU 1" in drawn
    assert "9.2 GPU-s lost by other ranks" in drawn


def test_a_day_of_a_node_leads_to_the_node_on_that_day(capture, visit, monkeypatch):
    node = capture.read("select distinct node from marts.gpus").item()
    cell = json.dumps(["lab", node, "2026-11-20"])
    monkeypatch.setattr(charts, "pick", lambda *_: cell)  # as a click on the cell returns it

    opened = links(visit(capture, "node_health", kind="nvlink"))

    assert opened[f"2026-11-20: open node {node}"]["from"][0].startswith("2026-11-20")


def test_a_failed_run_has_the_errors_before_its_end_and_leads_to_their_gpu(failed, visit):
    app = visit(failed, "one_run", run="e/train", **TIMES)

    assert "Failure chain" in texts(app)
    rows = "\n".join(frame.value.to_csv() for frame in app.dataframe)
    assert "5 uncorrected ECC errors on n7 GPU 3" in rows

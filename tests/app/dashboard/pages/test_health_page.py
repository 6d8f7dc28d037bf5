"""The pages of health and of the network, in-process: figures, links, hostile texts, no reading."""

from datetime import datetime

import polars as pl
from tests.app.opened_page import HOSTILE, links, page_of, table, texts

from goodput_app.dashboard.components.fleet import network_parts

AT = datetime(2026, 11, 20, 12, 31)  # noqa: DTZ001 -- UTC


def test_the_worst_node_is_one_link_away_with_its_suggestion_and_action(hit, visit):
    app = visit(hit, "node_health", kind="<b>x")

    assert "is not a kind of error" in texts(app)
    node = hit.read("select node from marts.nodes").item()
    assert links(app)[node]["node"] == [node]
    row = table(app, "suggested").row(0, named=True)
    assert (row["node"], row["errors"], row["code"]) == (node, 1, 79)
    # a run that began two minutes after the Xid ended badly, too: the Xid is not its cause
    assert row["suggested"] == "Watch: 1 error"
    assert not row["what_to_do"], "it was taken out since: nobody is to drain it again"
    assert "Node failures: 1" in texts(app)
    assert table(app, "mttr_s", "cause").height
    assert table(app, "reason")["reason"].to_list() == [HOSTILE]
    assert "<script>" not in texts(app)


def test_an_incident_links_to_its_gpu_its_node_and_the_run_that_it_hit(hit, visit):
    """Counters that were read are drawn, also where they are zero."""
    (incident,) = hit.read("select * from marts.gpu_incidents").to_dicts()
    named = [str(incident[name]) for name in ("cluster", "node", "device", "start_at")]

    incident_key = "|".join(named[:3]) + f"|{AT}.000000"
    app = visit(hit, "node_health", incident=incident_key, kind="ecc_corrected")

    assert len(app.get("plotly_chart")) == 2
    assert [label for label in links(app) if label.startswith("Open")] == [
        f"Open GPU {incident['gpu_index']}, {incident['node']}",
        f"Open node {incident['node']}",
        f"Open run {incident['run_id']}",
    ]


def test_a_kind_that_nobody_reads_names_the_counter_to_enable(evidence, visit):
    evidence.node("n", 1)
    evidence.samples("n#0", (0, 540), lambda _: True)
    evidence.build()

    app = visit(evidence.store, "node_health", kind="row_remap")

    shown = texts(app)
    assert "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS" in shown
    assert "No source reports node states" in shown
    assert "No source reports driver or VBIOS of these GPUs" in shown
    assert "Not read on any node: ECC, uncorrected; Row remaps; Thermal slowdown time." in shown


SESSION = {"from": "2026-11-20T12:00:00Z", "to": "2026-11-20T13:00:00Z"}
page = page_of("hit", "links_and_bandwidth", **SESSION)


def test_a_lost_link_leads_to_its_node_and_to_a_run_that_it_hit(hit, visit):
    (event,) = hit.read("select * from marts.link_events").to_dicts()
    picked = "|".join(str(event[k]) for k in ("cluster", "node", "kind", "device", "port"))
    moment = hit.read("select start_at::varchar from marts.link_events").item()
    app = visit(hit, "links_and_bandwidth", **SESSION, lost_link=f"{picked}|{moment}.000000")

    shown = links(app)
    assert shown[f"Open node {event['node']}"]["node"] == [event["node"]]
    runs = hit.read("select distinct run_key, run_id from marts.link_event_runs").to_dicts()
    assert any(shown.get(f"Open run {r['run_id']}", {}).get("run") == [r["run_key"]] for r in runs)


def test_a_run_is_called_by_the_name_of_its_job():
    runs = pl.DataFrame({"job_name": ["train", None], "run_id": ["1037", "main"]})
    assert runs.select(network_parts.RUN_NAME)["run_name"].to_list() == ["train", "main"]


def test_the_answer_names_what_was_found_and_what_a_fall_back_is(page):
    (answer,) = [warning.value for warning in page.warning]
    assert answer == "1 node with a slow link, 1 link lost, NCCL on sockets on 1 node."
    assert table(page, "transport")["note"].to_list() == [
        "fall-back to sockets, though InfiniBand or RoCE is there"
    ]


def test_runs_of_nccl_tests_are_compared_whatever_the_window(page):
    assert table(page, "busbw_gb_per_s")["busbw_gb_per_s"].to_list() == [300.0, 360.0]
    drawn = [chart.key for chart in page.get("plotly_chart")]
    assert drawn == ["bandwidth", "collective-times", "line-rates", "port-map", "benchmarks"]


def test_times_of_collectives_are_fitted_and_not_forecast_from_one_node(page):
    fitted = table(page, "latency_us")
    assert fitted["operation"].sort().to_list()[:2] == ["AllGather", "AllReduce"]
    assert (fitted["fit_error_percent"] < 50).all()
    said = [caption.value for caption in page.caption]
    assert any(text.startswith("No forecast for more GPUs") for text in said)
    assert "Bytes of collectives that stay inside a node: lab 100.0 %." in said

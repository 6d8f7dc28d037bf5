"""The page of health, in-process: figures of the marts, links, hostile texts, what is not read."""

from datetime import datetime

import polars as pl
from tests.app.opened_page import HOSTILE, links, table, texts

from goodput_queries.evidence.batch import Batch

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
    labels = [label for label in links(app) if label.startswith("Open")]
    assert labels == [
        f"Open GPU {incident['gpu_index']}, {incident['node']}",
        f"Open node {incident['node']}",
        f"Open run {incident['run_id']}",
    ]


def test_a_kind_that_nobody_reads_names_the_counter_to_enable(store, visit):
    gpu = {"cluster": "lab", "node": "n", "gpu_uuid": "GPU-1", "source": "test"}
    reading = {"gpu_uuid": "GPU-1", "gpu_instance": "", "power_w": 99.0, "source": "test"}
    moments = [AT, AT.replace(minute=40)]
    store.load(Batch("gpus", pl.DataFrame(gpu), "test", "test", "gpus"))
    readings = pl.DataFrame([{**reading, "ts": at} for at in moments])
    store.load(Batch("gpu_samples", readings, "test", "test", "samples"))
    store.build()

    app = visit(store, "node_health", kind="row_remap")

    shown = texts(app)
    assert "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS" in shown
    assert "No source reports node states" in shown
    assert "No source reports driver or VBIOS of these GPUs" in shown
    assert "Not read on any node: ECC, uncorrected; Row remaps; Thermal slowdown time." in shown

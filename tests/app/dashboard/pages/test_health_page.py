"""The page of health, in-process: figures of the marts, links, hostile texts, what is not read."""

from datetime import datetime

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, links, table, texts
from tests.recorded_session import built

from goodput_queries.evidence.batch import Batch

AT = datetime(2026, 11, 20, 12, 31)  # noqa: DTZ001 -- UTC
EMPTY_WINDOW = {"from": "2020-01-01", "to": "2020-01-02"}


@pytest.fixture(scope="module")
def hit(empty_database, tmp_path_factory):
    """Give the recorded session, in which a GPU has an Xid and the node is down for a moment."""
    for store in built(
        empty_database, tmp_path_factory, "sacct.txt", "nvml.jsonl.gz", "job_events.jsonl.gz"
    ):
        gpu = store.read("select cluster, node, gpu_uuid from marts.gpus order by all limit 1")
        source = {"source": "test"}
        event = {
            "ts": AT, "ts_precision": "exact", "kind": "xid", "code": 79, "message": HOSTILE,
        }  # fmt: skip
        state = {"state": "down", "start_at": AT, "end_at": AT, "reason": HOSTILE}
        for name, row, names in (
            ("gpu_events", event, ("cluster", "node", "gpu_uuid")),
            ("node_states", state, ("cluster", "node")),
        ):
            frame = pl.DataFrame({**gpu.select(names).row(0, named=True), **row, **source})
            store.load(Batch(name, frame, "test", "test", name))
        store.build()
        yield store


def test_the_worst_node_is_one_link_away_with_its_suggestion_and_action(hit, visit):
    app = visit(hit, "node_health")

    node = hit.read("select node from marts.nodes").item()
    assert links(app)[node]["node"] == [node]
    row = table(app, "suggested").row(0, named=True)
    assert (row["node"], row["errors"], row["code"]) == (node, 1, 79)
    # a run that began two minutes after the Xid ended badly, too: the Xid is not its cause
    assert row["suggested"] == "Watch: 1 error"
    assert not row["what_to_do"], "it was taken out since: nobody is to drain it again"
    assert "Node failures: 1" in texts(app)
    assert table(app, "reason")["reason"].to_list() == [HOSTILE]
    assert "<script>" not in texts(app)


def test_an_incident_links_to_its_gpu_its_node_and_the_run_that_it_hit(hit, visit):
    (incident,) = hit.read("select * from marts.gpu_incidents").to_dicts()
    named = [str(incident[name]) for name in ("cluster", "node", "device", "start_at")]

    app = visit(hit, "node_health", incident="|".join(named[:3]) + f"|{AT}.000000")

    labels = [label for label in links(app) if label.startswith("Open")]
    assert labels == [
        f"Open GPU {incident['gpu_index']}, {incident['node']}",
        f"Open node {incident['node']}",
        f"Open run {incident['run_id']}",
    ]


@pytest.mark.parametrize("kind", ["ecc_corrected", "nvlink", "thermal"])
def test_counters_that_were_read_are_drawn_also_where_they_are_zero(hit, visit, kind):
    app = visit(hit, "node_health", kind=kind)

    assert len(app.get("plotly_chart")) == 2


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


@pytest.mark.parametrize(
    ("given", "said"),
    [({"kind": "<b>x"}, "is not a kind of error"), (EMPTY_WINDOW, "No data in")],
    ids=["an unknown kind", "a window without data"],
)
def test_what_is_not_there_is_named(hit, visit, given, said):
    assert said in texts(visit(hit, "node_health", **given))

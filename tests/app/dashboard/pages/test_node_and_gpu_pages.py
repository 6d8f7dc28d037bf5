"""The pages of nodes, of one GPU, of health and of the network, on the session and parts of it."""

from datetime import datetime

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest
from tests.app.conftest import PATIENCE_S
from tests.app.opened_page import HOSTILE, assert_sound, links, page_of, table, texts
from tests.tables import each

from goodput_app.dashboard.components.fleet import network_parts


@pytest.fixture
def gpu(hit):
    return str(hit.read("select gpu_uuid from marts.gpu_events").item())


def test_a_node_shows_its_gpus_on_one_axis_with_events_and_runs_and_its_lost_link(hit, visit, gpu):
    node = hit.read("select node from marts.nodes").item()

    app = visit(hit, "nodes_and_one", node=node, of_gpu=gpu)

    assert len(app.get("plotly_chart")) == 2
    assert links(app)[f"Open GPU 0, {node}"]["gpu"] == [gpu]
    (gpus,) = (f.value for f in app.dataframe if "gpu_name" in f.value)
    assert gpus["gpu_name"].to_list() == ["GPU 0", "GPU 1", "GPU 2", "GPU 3"]
    assert gpus["events"].to_list() == [1, 0, 0, 0]
    assert "No data" not in texts(app)
    (table,) = [t.value for t in app.dataframe if "what" in t.value.columns]
    lost = table[table["what"] == "Link down: InfiniBand and RoCE <b>mlx5_0</b> port 1"]
    assert lost["length_s"].to_list() == [120.0]
    runs = hit.read("select distinct job_name from marts.link_event_runs")["job_name"]
    assert lost["run_name"].to_list() == [", ".join(runs.sort())]
    drawn = str(next(e.proto.spec for e in app.get("plotly_chart")))
    assert "Link down: InfiniBand and RoCE &lt;b&gt;mlx5_0" in drawn
    assert "Where the GPU time went (%)" in drawn
    app.session_state["node_details"] = True  # lanes of each GPU and its host, once opened
    app.run()
    assert len(app.get("plotly_chart")) == 4
    specs = str([e.proto.spec for e in app.get("plotly_chart")])
    assert "CPU busy" in specs
    assert "SM clock (MHz)" in specs


def test_a_gpu_opens_from_a_link_with_the_peers_of_a_run_events_and_what_held_it(hit, visit, gpu):
    window = {"from": "2026-11-20T12:30:00Z", "to": "2026-11-20T12:34:00Z"}

    app = visit(hit, "one_gpu", gpu=gpu, peers="lab/main", **window)

    assert app.title[0].value.startswith("GPU 0, ")
    assert ":gray-badge[1 GPU]" in [one.value for one in app.markdown]
    assert app.selectbox(key="scope_peers").value == "lab/main"
    shown = texts(app)
    assert "3 peers with readings" in shown
    assert "Events: 1" in shown
    assert "s means of samples." in shown
    assert "Margin to the slowdown temperature: " in shown
    node = links(app)[f"Open node {hit.read('select node from marts.nodes').item()}"]
    assert node["from"] == [window["from"]]


def test_a_gpu_that_is_not_known_is_named_as_text_and_without_one_the_nodes_are(hit, visit):
    app = visit(hit, "one_gpu", gpu=HOSTILE)

    assert app.info[0].value.startswith("No GPU ")
    assert app.info[0].value.endswith(" is in the inventory.")
    assert "](http" not in texts(app)
    assert "Choose a GPU" in visit(hit, "one_gpu").info[0].value


def test_a_time_range_without_the_gpu_offers_its_last_data(evidence, visit):
    evidence.node("a", 1)
    evidence.listed("b", "c/gone", "test", valid_to_at=600)
    evidence.watched(7200)
    evidence.store.build()
    window = {"from": "2027-01-15T08:30:00Z", "to": "2027-01-15T09:00:00Z"}

    app = visit(evidence.store, "one_gpu", gpu="c/gone", **window)

    assert app.info[0].value.startswith("GPU c/gone has no evidence in ")
    app.button(key="gpu_jump").click().run()
    assert_sound(app)
    assert app.title[0].value == "GPU 0, b"


def drawn(script):
    """Return what a script with a part of a page draws."""
    app = AppTest.from_string(f"import polars as pl\n{script}", default_timeout=PATIENCE_S).run()
    return assert_sound(app)


@pytest.mark.usefixtures("here")
@each(
    ("{}", "Not configured: metrics of the host"),
    ('{"cpu_busy_ratio": [0.5]}', "does not report: Host memory used, Disks, Ethernet, Inf"),
)
def test_what_a_host_does_not_report_is_named(series, caption):
    app = drawn(
        f"""
from goodput_app.dashboard.components.fleet import host_parts
series = pl.DataFrame({series})
host_parts.missing(series.with_columns(at=pl.datetime(2026, 1, 1)), "gpu-a01")
"""
    )

    assert caption in app.caption[0].value
    assert ['urls = ["http://gpu-a01:9100"]' in code.value for code in app.code] == [True] * (
        series == "{}"
    )


@each({"no-counter": ([], 0, ["Not reported: ECC, uncorrected; ECC, corrected; Row remaps."]),
"no-rise": ([("ecc_corrected", None, 0.0)], 0,
     ["No counter of memory errors rose in this time range (ECC, corrected).",
      "Not reported: ECC, uncorrected; Row remaps."]),
"a-rise": ([("ecc_corrected", 1, 3.0), ("ecc_uncorrected", None, 0.0), ("row_remap", None, 0.0)], 1,
     []),
})  # fmt: skip
def test_memory_errors_are_listed_or_none_or_not_reported(rows, tables, captions):
    app = drawn(
        f"""
from goodput_app.dashboard.components.fleet import gpu_parts
schema = {{"kind": pl.String, "hour": pl.Int64, "rise": pl.Float64}}
found = pl.DataFrame({rows}, schema=schema, orient="row")
hours = pl.datetime(2026, 1, 1) + pl.duration(hours=pl.col("hour"))
gpu_parts.memory_errors(found.with_columns(hour_at=hours, label=pl.col("kind")))
"""
    )

    assert [len(table.value) for table in app.dataframe] == [1] * tables
    assert [caption.value for caption in app.caption] == captions


@each({
    "chronic": ("chronic", True, "chronic"),
    "few-hours": (None, True, "not known"),
    "none": ("", True, "Neither heat, the power brake nor the board slowed this GPU."),
    "not-reported": ("", False, "Throttling is not known: these readings carry neither"),
})  # fmt: skip
def test_throttling_of_a_gpu_is_chronic_passing_or_not_known(recurrence, is_reported, shown):
    app = drawn(
        f"""
from goodput_app.dashboard.components.fleet import gpu_parts
numbers = dict.fromkeys(("throttled_hours", "read_hours", "throttled_ratio",
                         "gpu_temperature_c", "slowdown_margin_c"), 1.0)
row = {{"cluster": "c", "node": "n", "gpu_uuid": "g", "gpu_index": 0, "reason": "hw_thermal",
        "recurrence": {recurrence!r}, **numbers}}
found = pl.DataFrame(row, schema_overrides={{"recurrence": pl.String}})
sources = pl.DataFrame({{"has_readings": [True], "has_reasons": [{is_reported}],
                         "has_counters": [False]}})
gpu_parts.throttling(found.filter(pl.col("recurrence").ne_missing("")), sources)
"""
    )

    listed = [table.value["recurrence"][0] for table in app.dataframe]
    assert (listed or [app.caption[0].value])[0].startswith(shown)


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

    shown = texts(visit(evidence.store, "node_health", kind="row_remap"))
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


def test_the_page_of_the_network_names_what_was_found_compares_benchmarks_and_fits_times(page):
    (answer,) = [warning.value for warning in page.warning]
    assert answer == "1 node with a slow link, 1 link lost, NCCL on sockets on 1 node."
    assert table(page, "transport")["note"].to_list() == [
        "fall-back to sockets, though InfiniBand or RoCE is there"
    ]
    assert table(page, "busbw_gb_per_s")["busbw_gb_per_s"].to_list() == [300.0, 360.0]
    drawn = [chart.key for chart in page.get("plotly_chart")]
    assert drawn == ["bandwidth", "collective-times", "line-rates", "port-map", "benchmarks"]
    fitted = table(page, "latency_us")
    assert fitted["operation"].sort().to_list()[:2] == ["AllGather", "AllReduce"]
    assert (fitted["fit_error_percent"] < 50).all()
    said = [caption.value for caption in page.caption]
    assert any(text.startswith("No forecast for more GPUs") for text in said), "of one node"
    assert "Bytes of collectives that stay inside a node: lab 100.0 %." in said

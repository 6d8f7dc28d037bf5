"""The page of the network, in-process, on a fleet with one lost link and on nothing."""

import polars as pl
import pytest
import streamlit as st
from tests.app.conftest import opened
from tests.app.opened_page import assert_sound, links, table
from tests.recorded_session import CAPTURED, SAMPLE, built

from goodput_app.dashboard.components.fleet import network_parts
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.evidence.batch import Batch

HOSTILE = "<b>mlx5_0</b>"
SESSION = {"from": "2026-11-20T12:00:00Z", "to": "2026-11-20T13:00:00Z"}


@pytest.fixture(scope="module")
def session(empty_database, tmp_path_factory):
    """Give the recorded session with its slow link, a lost port, sockets and a benchmark."""
    for store in built(empty_database, tmp_path_factory, *CAPTURED):
        ingest(store, "auto", [SAMPLE / "nccl_inspector"], ReadOptions(cluster="lab"))
        node = store.read("select distinct node from marts.gpus").item()
        readings = f"""select 'test' as source, $1 as node, 'infiniband' as kind,
                '{HOSTILE}' as device, '1' as port, n not in (2, 3) as is_up, n as rx_drops,
                timestamp '2026-11-20 12:31:00' + interval (n) minute as ts
            from range(6) as minutes(n)"""
        sockets = """select 'test' as source, 'lab' as cluster, '0x1' as comm_id, $1 as node,
            7 as pid, 2 as nodes, 'NET/Socket' as transport"""
        bench = """select 'test' as source, 'lab' as cluster, 'b' || n as benchmark_id,
                'AllReduce' as operation, 1073741824 as size_bytes, 'float' as dtype,
                'sum' as reduction, -1 as root, true as is_in_place, 0 as repeat,
                false as is_cpu_time, 3.6e11 - n * 6e10 as busbw_bytes_per_s, 4 as ranks,
                [$1] as nodes, 'NVIDIA H200' as gpu_model,
                timestamp '2026-11-18' + interval (n) day as started_at
            from range(2) as days(n)"""
        for name, sql in (
            ("link_samples", readings), ("comm_transports", sockets), ("nccl_benchmarks", bench)
        ):  # fmt: skip
            store.load(Batch(name, store.read(sql, [node]), "test", "test", name))
        store.build()
        yield store


@pytest.fixture(scope="module")
def page(session):
    """Give the page of the session, drawn once."""
    yield opened(session, "links_and_bandwidth", **SESSION)
    st.cache_data.clear()


def test_the_answer_names_what_was_found(page):
    assert_sound(page)
    (answer,) = [warning.value for warning in page.warning]
    assert answer == "1 node with a slow link, 1 link lost, NCCL on sockets on 1 node."


def test_the_slow_run_of_the_session_is_the_one_that_is_slow(session, page):
    (node,) = session.read("select * from marts.slow_nodes").to_dicts()
    assert table(page, "verdict")["run_name"].to_list() == [node["run_id"]] == ["slowlink"]
    slow = session.read("select distinct run_id from marts.comm_bandwidth where is_slow")
    assert slow["run_id"].to_list() == ["slowlink"]
    of_expected = table(page, "of_expected_percent")
    assert of_expected["run_name"][0] == "slowlink"
    assert of_expected["of_expected_percent"][0] < 20


def test_a_lost_link_leads_to_its_node_and_to_a_run_that_it_hit(session, visit):
    (event,) = session.read("select * from marts.link_events").to_dicts()
    picked = "|".join(str(event[k]) for k in ("cluster", "node", "kind", "device", "port"))
    moment = session.read("select start_at::varchar from marts.link_events").item()
    app = visit(session, "links_and_bandwidth", **SESSION, lost_link=f"{picked}|{moment}.000000")

    shown = links(app)
    assert shown[f"Open node {event['node']}"]["node"] == [event["node"]]
    hit = session.read("select distinct run_key, run_id from marts.link_event_runs").to_dicts()
    assert any(shown.get(f"Open run {r['run_id']}", {}).get("run") == [r["run_key"]] for r in hit)


def test_a_hostile_name_of_a_port_is_text(page):
    ports = table(page, "down_percent")
    assert ports["link"].to_list() == [f"InfiniBand and RoCE {HOSTILE} port 1"]
    assert ports["trouble"].to_list() == ["lost"]


def test_a_run_is_called_by_the_name_of_its_job():
    runs = pl.DataFrame({"job_name": ["train", None], "run_id": ["1037", "main"]})
    assert runs.select(network_parts.RUN_NAME)["run_name"].to_list() == ["train", "main"]


def test_sockets_are_called_a_fall_back_where_infiniband_is_there(page):
    assert table(page, "transport")["note"].to_list() == [
        "fall-back to sockets, though InfiniBand or RoCE is there"
    ]


def test_runs_of_nccl_tests_are_compared_whatever_the_window(page):
    assert table(page, "busbw_gb_per_s")["busbw_gb_per_s"].to_list() == [300.0, 360.0]
    assert len(page.get("plotly_chart")) == 2

"""The page of the network, in-process, on a fleet with one lost link and on nothing."""

import polars as pl
import pytest
import streamlit as st
from tests.app.conftest import opened
from tests.app.opened_page import assert_sound, table

from goodput_app.dashboard.components.fleet import network_parts

SESSION = {"from": "2026-11-20T12:00:00Z", "to": "2026-11-20T13:00:00Z"}


@pytest.fixture(scope="module")
def page(hit):
    yield opened(hit, "links_and_bandwidth", **SESSION)
    st.cache_data.clear()


def test_the_answer_names_what_was_found(page):
    assert_sound(page)
    (answer,) = [warning.value for warning in page.warning]
    assert answer == "1 node with a slow link, 1 link lost, NCCL on sockets on 1 node."


def test_a_run_is_called_by_the_name_of_its_job():
    runs = pl.DataFrame({"job_name": ["train", None], "run_id": ["1037", "main"]})
    assert runs.select(network_parts.RUN_NAME)["run_name"].to_list() == ["train", "main"]


def test_sockets_are_called_a_fall_back_where_infiniband_is_there(page):
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

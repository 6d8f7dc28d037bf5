"""Explorer: which other metrics a site has."""

from dataclasses import replace

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, scope_bar, tables
from goodput_app.dashboard.components.states import panel, require_all_teams
from goodput_app.dashboard.data import metrics, other_metrics
from goodput_app.dashboard.figures import other_metrics as figures
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units

METRICS = headers("metric_explorer.metrics")

view = scope_bar.required_view()
gpu = st.query_params.get("gpu")
scope = replace(view.scope, gpu_uuid=gpu) if gpu else view.scope
st.title("Explorer", anchor=False)
st.caption("Which other GPU metrics are recorded, and how did they change?")
require_all_teams(scope)
with panel("", "marts.other_metrics"):
    found = other_metrics.catalogue(scope)
    if found.is_empty():
        st.info(
            "No source reports other metrics of these GPUs in this time range. Power, activity, "
            "clocks, temperature and memory are on the pages of nodes and GPUs.",
            icon=":material/help:",
        )
        st.stop()
    shown = found.with_columns(
        pl.col("meaning").fill_null("not in the catalogue"),
        pl.col("unit", "kind").fill_null(units.NOT_KNOWN),
    )
    picked = tables.pick(shown, METRICS, "metric", found["metric"], rows=10)
if picked is None:
    st.caption("Select a metric to draw it.")
    st.stop()
name = picked["metric"]
with panel(theme.markdown_text(name), "staging.stg_gpu_samples_other", help=picked["meaning"]):
    is_counter = picked["kind"] == "counter"
    series = other_metrics.over_time(scope, name, is_counter=is_counter)
    if series.is_empty():
        st.info("A counter needs two samples to show an increase.", icon=":material/help:")
    else:
        drawn = series if is_counter else metrics.with_holes(series, ("mean", "low", "high"))
        figure = figures.over_time(drawn, picked, view.window)
        charts.over_time(figure, series, "metric", f"{name} over time")
        st.caption(
            "Bars: the increase over all GPUs in each bin; a reset counts again from 0."
            if is_counter
            else "Line: the mean of the GPUs. Band: the lowest to the highest value of any GPU."
        )

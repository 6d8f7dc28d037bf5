"""GPU: whether it is this device."""

from dataclasses import replace

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import charts, flag_parts, places, scope_bar
from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.components.fleet import gpu_parts
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.components.states import guarded, panel
from goodput_app.dashboard.data import health, marts, metrics
from goodput_app.dashboard.figures import ledger as figures

view = scope_bar.required_view()
gpu = st.query_params.get("gpu")
if not gpu:
    st.title("GPU", anchor=False)
    st.info("Choose a GPU on the page Nodes.", icon=":material/memory:")
    places.to_page(name_links.NODE_PAGE, "Nodes", "dns", node=None)
    st.stop()
scope = replace(view.scope, gpu_uuid=gpu, node=None, cluster=None, team=None, run=None)
stays = metrics.gpus(scope)
if stays.is_empty():
    gpu_parts.absent(gpu, scope, view)
    st.stop()

card = stays.row(-1, named=True)
allocations = metrics.allocations(scope)
events = metrics.events(scope)
gpu_parts.heading(card, stays.height)
flag_parts.title(gpu_uuid=gpu)
peers = gpu_parts.peers(card, scope, allocations)
with guarded("marts.gpu_metrics"):
    series, read = gpu_parts.series(scope, gpu, peers)
    own = series.filter(pl.col("gpu_uuid") == gpu)
    gpu_parts.tiles(own, events)
with panel("one_gpu.on_one_time_axis"):
    gpu_parts.draw(view, card, allocations, events, (series, read), scope)
with panel("one_gpu.events"):
    parts.events_table(events)
with panel("one_gpu.memory_errors"):
    gpu_parts.memory_errors(health.memory_errors(scope))
with panel("one_gpu.throttling"):
    gpu_parts.heat_margin(own, card, scope)
    gpu_parts.throttling(health.throttled_gpus(scope), marts.throttle_sources(scope))
with panel("one_gpu.allocated_to"):
    parts.allocations_table(allocations)
with panel("one_gpu.ledger"):
    ledger = marts.ledger_by_category(scope).filter(pl.col("gpu_ms") > 0)
    charts.draw(
        figures.ledger_bar(ledger),
        ledger.drop("colour"),
        "gpu-ledger",
        "The GPU's time by category",
    )
st.caption(f"GPU UUID {theme.markdown_text(gpu)}, {time_zone.window(view.start, view.end)}")

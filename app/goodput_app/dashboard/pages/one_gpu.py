"""GPU: whether it is this device."""

from dataclasses import replace

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import charts, flag_parts, places, scope_bar
from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.components.fleet import gpu_parts, node_parts
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.components.states import panel
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
at_node = replace(scope, gpu_uuid=None, node=card["node"], cluster=card["cluster"])
gpu_parts.heading(card, stays.height, health.outages_seen(at_node))
flag_parts.title(gpu_uuid=gpu)
ledger = marts.ledger_by_category(replace(scope, bucket_ms=None)).filter(pl.col("gpu_ms") > 0)
if ledger.height:
    with panel("", "marts.ledger_by_category"):
        node_parts.ledger_bar(ledger, "GPU")
peers = gpu_parts.peers(card, scope, allocations)
with panel("", "marts.gpu_metrics"):
    series, read = gpu_parts.series(scope, gpu, peers)
    own = series.filter(pl.col("gpu_uuid") == gpu)
    gpu_parts.tiles(own, events)
with panel(
    "On one time axis",
    "marts.gpu_metrics",
    help="Its job runs, metrics and events. Grey band: the peers' range (least to "
    "most of up to four peers, 10th to 90th percentile of more).",
):
    gpu_parts.draw(view, card, allocations, events, (series, read), scope)
with panel("Events", "marts.gpu_events", help="Xid and other events, as the log has them."):
    parts.events_table(events)
with panel(
    "Memory errors",
    "marts.gpu_memory_errors",
    help="Increase of the counters of ECC errors, remapped rows and retired pages "
    "by hour, never their value. The first and the last hour count as a "
    "whole.",
):
    gpu_parts.memory_errors(health.memory_errors(scope))
with panel(
    "Throttling",
    "marts.throttled_gpus",
    help="Whether it is passing or chronic, by the hours of the time range in "
    "which the GPU was read. Power caps are left out.",
):
    gpu_parts.heat_margin(own, card, scope)
    gpu_parts.throttling(health.throttled_gpus(scope), marts.throttle_sources(scope))
with panel(
    "Allocated to", "marts.gpu_allocations", help="Job runs that this GPU was allocated to."
):
    parts.allocations_table(allocations)
with panel("Ledger", "marts.ledger_by_category", help="The GPU's time by category."):
    charts.draw(
        figures.ledger_bar(ledger),
        ledger.drop("colour"),
        "gpu-ledger",
        "The GPU's time by category",
    )
st.caption(f"GPU UUID {theme.markdown_text(gpu)}, {time_zone.window(view.start, view.end)}")

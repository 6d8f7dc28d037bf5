"""Nodes: which machines lose most."""

from dataclasses import replace

import polars as pl
import streamlit as st

from goodput_app.dashboard import flags, theme
from goodput_app.dashboard.components import charts, flag_parts, places, scope_bar
from goodput_app.dashboard.components.fleet import (
    configuration,
    host_parts,
    node_axis,
    node_parts,
    node_verdict,
    what_happened,
)
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import findings, health, marts, metrics, network
from goodput_app.dashboard.figures import ledger as figures

view = scope_bar.required_view()
node = view.scope.node
if node is None:
    st.title("Nodes", anchor=False)
    st.caption("Which machines lose most?")
    with panel("", "marts.nodes"):
        node_parts.all_nodes(metrics.nodes(view.scope), health.outages_seen(view.scope), view)
    st.stop()

scope = node_parts.scope_of(view.scope, node, [])
gpus = metrics.gpus(scope)
outages = health.outages_seen(scope)
places.to_page("pages/nodes_and_one.py", "All nodes", "arrow_back", node=None)
with st.container(horizontal=True, gap="small", vertical_alignment="center"):
    st.title(theme.markdown_text(node), anchor=False, width="content")
    what_happened.state(outages, dict(marts.clusters().select("cluster", "as_of_at").iter_rows()))
    of_all_times = replace(scope, from_ms=None, to_ms=None)
    node_verdict.incidents(health.outages_seen(of_all_times), view)
flag_parts.title(node=node)
if gpus.is_empty():
    st.info(
        "No GPU of this node is in the inventory in this time range.",
        icon=":material/hourglass_empty:",
    )
    st.stop()
st.caption(theme.markdown_text(node_parts.facts(gpus)))
found = findings.latest_known(flags.scope_of(view.scope))
with panel("", "marts.findings"):
    node_verdict.draw(found, node)
ledger = marts.ledger_by_category(replace(scope, bucket_ms=None)).filter(pl.col("gpu_ms") > 0)
series, read = node_parts.series(scope, gpus)
one = node_axis.Node(
    scope=scope,
    gpus=gpus,
    series=series,
    read=read,
    outages=outages,
    events=metrics.events(scope),
    allocations=metrics.allocations(scope),
    links=network.link_events(scope),
    gaps=metrics.telemetry_gaps(scope),
    ledger=ledger,
    findings=None if found is None else found.filter(pl.col("node") == node),
)
happened = what_happened.merged(
    outages, one.events, health.node_tests(scope), one.findings,
    links=one.links, allocations=one.allocations,
)  # fmt: skip
with panel("", "marts.ledger_by_category"):
    node_parts.ledger_bar(ledger)
lanes, beside = st.columns([3.1, 1], gap="small")
with (
    lanes,
    st.container(border=True),
    panel(
        "On one time axis",
        "marts.gpu_metrics",
        help="Known states come before missing readings. Drag to zoom.",
    ),
):
    node_axis.draw(view, one, happened)
with (
    beside,
    st.container(border=True),
    panel("Events", "marts.findings", help="Of all sources in one list, the latest first."),
):
    what_happened.brief(happened)
categories = metrics.categories(scope, read)
with panel("GPUs", "marts.gpus", help="Each at the end of the time range, the flagged ones first."):
    node_parts.gpus_of_node(one, categories, view)
if happened.height:
    with panel("What happened", "marts.findings", help="All rows, with reason, source and cost."):
        what_happened.draw(happened)
configuration.draw(health.settings(scope))
details = st.expander(
    "All metrics of its GPUs and its host", key="node_details", on_change="rerun",
    icon=":material/monitoring:",
)  # fmt: skip
if details.open:
    with details, panel("", "marts.gpu_metrics"):
        host = network.host_series(scope, read)
        node_parts.draw(view, one, categories, host)
        host_parts.missing(host, node, is_of_lake=read.is_of_lake)
with panel("Ledger", "marts.ledger_by_category", help="The node's GPU time by category."):
    charts.draw(
        figures.ledger_bar(ledger), ledger.drop("colour"), "node-ledger", "GPU time by category"
    )

"""Nodes: which machines lose most."""

from dataclasses import replace

import polars as pl
import streamlit as st

from goodput_app.dashboard import flags, theme
from goodput_app.dashboard.components import charts, flag_parts, scope_bar
from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.components.fleet import host_parts, node_parts, what_happened
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import findings, health, marts, metrics, network
from goodput_app.dashboard.figures import ledger as figures
from goodput_app.text import units

view = scope_bar.required_view()
node = view.scope.node
if node is None:
    st.title("Nodes", anchor=False)
    st.caption("Which machines lose most?")
    with panel("", "marts.nodes"):
        node_parts.all_nodes(metrics.nodes(view.scope), health.outages_seen(view.scope), view.end)
    st.stop()

scope = node_parts.scope_of(view.scope, node, [])
gpus = metrics.gpus(scope)
st.page_link(
    "pages/nodes_and_one.py",
    label="All nodes",
    icon=":material/arrow_back:",
    query_params=scope_bar.carried(node=None),
)
st.title(theme.markdown_text(node), anchor=False)
outages = health.outages_seen(scope)
ends = dict(marts.clusters().select("cluster", "as_of_at").iter_rows())
what_happened.state(outages, ends)
flag_parts.title(node=node)
if gpus.is_empty():
    st.info(
        "No GPU of this node is in the inventory in this time range.",
        icon=":material/hourglass_empty:",
    )
    st.stop()
models = ", ".join(sorted({model for model in gpus["gpu_model"] if model}))
rack = gpus["rack"][0]
facts = [
    units.count(gpus["gpu_uuid"].n_unique(), "GPU"),
    models or "model not known",
    "rack unknown" if rack is None else f"rack {theme.printable(rack).removeprefix('rack')}",
    gpus["cluster"][0],
]
st.caption(theme.markdown_text(" / ".join(facts)))
events = metrics.events(scope)
allocations = metrics.allocations(scope)
found = node_parts.series(scope, gpus)
categories = metrics.categories(scope, found[1])
lost = network.link_events(scope)
with panel(
    "What happened",
    "marts.findings",
    help="States, errors, links, runs, tests and findings of the node in one list, the latest "
    "first.",
):
    of_range = findings.latest_known(flags.scope_of(view.scope))
    of_node = None if of_range is None else of_range.filter(pl.col("node") == node)
    tests = health.node_tests(scope)
    what_happened.draw(what_happened.merged(outages, events, lost, allocations, tests, of_node))
with panel("GPUs", "marts.gpus", help="Each at the end of the time range."):
    node_parts.links_to_gpus(gpus)
    node_parts.gpus_of_node(gpus, found[0], categories, allocations, events)
with panel(
    "On one time axis",
    "marts.gpu_metrics",
    help="A lane for each GPU: the category with most time. Below: a line for each GPU, and the "
    "host.",
):
    host = network.host_series(scope, found[1])
    node_parts.draw(view, gpus, found, categories, events, (host, lost))
    host_parts.missing(host, node, is_of_lake=found[1].is_of_lake)
with panel(
    "Runs on this node", "marts.gpu_allocations", help="Job runs that its GPUs were allocated to."
):
    parts.allocations_table(allocations, "held")
with panel("Ledger", "marts.ledger_by_category", help="The node's GPU time by category."):
    ledger = marts.ledger_by_category(replace(scope, bucket_ms=None)).filter(pl.col("gpu_ms") > 0)
    charts.draw(
        figures.ledger_bar(ledger), ledger.drop("colour"), "node-ledger", "GPU time by category"
    )

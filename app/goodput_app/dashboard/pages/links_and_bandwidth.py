"""Network: which links and nodes are slow, and whether NCCL uses the fast ones."""

import streamlit as st

from goodput_app.dashboard.components import places, scope_bar
from goodput_app.dashboard.components.fleet import collective_parts, host_parts
from goodput_app.dashboard.components.fleet import network_parts as parts
from goodput_app.dashboard.components.states import guarded, panel, require_all_teams
from goodput_app.dashboard.data import network

scope = scope_bar.required_view().scope
st.title("Network", anchor=False)
st.caption("Is it the network?")
require_all_teams(scope)
with guarded("marts.slow_nodes"):
    slow = network.slow_nodes(scope)
    lost = network.link_events(scope)
    transports = network.transports(scope)
    parts.answer(slow, lost, transports)
with panel("links_and_bandwidth.slow_nodes"):
    parts.slow_nodes(slow, judged=not network.communicators(scope).is_empty())
with panel("links_and_bandwidth.lost_links"):
    places.table("network.lost", host_parts.named(lost))
with panel("links_and_bandwidth.bus_bandwidth"):
    parts.bandwidth(network.bandwidth(scope))
    parts.communicators(scope)
    collective_parts.tiers(scope)
    collective_parts.algorithms(scope)
with panel("links_and_bandwidth.latency_and_bandwidth_of_collectives"):
    collective_parts.times(scope)
with panel("links_and_bandwidth.share_of_line_rate"):
    parts.line_rates(scope)
with panel("links_and_bandwidth.ports"):
    parts.links(scope)
    parts.retransmits(scope)
with panel("links_and_bandwidth.nvlink_and_pcie"):
    places.table("network.gpu_links", network.gpu_links(scope))
with panel("links_and_bandwidth.transports"):
    parts.transports(transports)
with panel("links_and_bandwidth.nccl_tests"):
    parts.benchmarks(scope)

"""Network: which links and nodes are slow, and whether NCCL uses the fast ones."""

import streamlit as st

from goodput_app.dashboard import flags
from goodput_app.dashboard.components import places, scope_bar
from goodput_app.dashboard.components.fleet import collective_parts, host_parts
from goodput_app.dashboard.components.fleet import network_parts as parts
from goodput_app.dashboard.components.states import panel, require_all_teams
from goodput_app.dashboard.data import findings, network

scope = scope_bar.required_view().scope
st.title("Network", anchor=False)
st.caption("Is it the network?")
require_all_teams(scope)
with panel("", "marts.slow_nodes"):
    slow = network.slow_nodes(scope)
    lost = network.link_events(scope)
    transports = network.transports(scope)
    parts.answer(slow, lost, transports, findings.latest_known(flags.scope_of(scope)))
with panel(
    "Slow nodes",
    "marts.slow_nodes",
    help="Nodes of communicators below 80 % of the expected bandwidth, at 16 MiB "
    "and more. Confirmed: a link of it was lost or had errors. Likely: it is "
    "slow with all peers.",
):
    parts.slow_nodes(slow, judged=not network.communicators(scope).is_empty())
with panel(
    "Lost links", "marts.link_events", help="When a port was down, and the runs at that time."
):
    places.table("network.lost", host_parts.named(lost))
with panel(
    "Bus bandwidth",
    "marts.bus_bandwidth",
    help="For each collective that of the rank that waited least, from NCCL Inspector.",
):
    parts.bandwidth(network.bandwidth(scope))
    parts.communicators(scope)
    collective_parts.tiers(scope)
    collective_parts.algorithms(scope)
with panel(
    "Latency and bandwidth of collectives",
    "marts.collective_fits",
    help="Time = latency + size / bandwidth, fitted to the median time of each "
    "size, and what that means for more GPUs. Operations below the size at "
    "which half of the limit is reached wait for latency: larger buckets "
    "help.",
):
    collective_parts.times(scope)
with panel(
    "Share of line rate",
    "marts.line_rates",
    help="Traffic of ports by hour, of what their speed allows. From 90 % on a link is the limit.",
):
    parts.line_rates(scope)
with panel("Ports", "marts.link_errors", help="In the hours that the time range touches."):
    parts.links(scope)
    parts.retransmits(scope)
with panel("NVLink and PCIe", "marts.gpu_link_errors", help="Counters of GPUs that rose."):
    places.table("network.gpu_links", network.gpu_links(scope))
with panel(
    "Transports", "marts.transports", help="As NCCL's log reports them; its lines carry no time."
):
    parts.transports(transports)
with panel("nccl-tests", "marts.nccl_benchmarks", help="All runs, whatever the time range."):
    parts.benchmarks(scope)

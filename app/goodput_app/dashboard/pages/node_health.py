"""Health: what breaks, on which nodes, and what to do with them."""

import polars as pl
import streamlit as st

from goodput_app.dashboard.components import places, scope_bar, tables
from goodput_app.dashboard.components.fleet import health_parts as parts
from goodput_app.dashboard.components.runs import failure_parts
from goodput_app.dashboard.components.states import guarded, panel
from goodput_app.dashboard.data import health

view = scope_bar.required_view()
scope = view.scope

st.title("Health", anchor=False)
st.caption("What breaks, on which nodes, and what to do with them?")
with guarded("marts.fleet_reliability"):
    parts.fleet(health.fleet(scope))
with panel("node_health.nodes_by_cost_of_their_failures"):
    parts.nodes(health.nodes(scope))
with panel("node_health.errors_by_node_and_day"):
    parts.node_days(view)
with panel("node_health.time_between_failures_by_job_size"):
    if (sizes := health.by_job_size(scope)).is_empty():
        st.caption("No attempt with a known number of GPUs in this scope.")
    else:
        parts.by_job_size(sizes)
with panel("node_health.time_between_failures_by_cause"):
    failure_parts.by_cause(scope)
with panel("node_health.xids_by_code"):
    if (xids := health.xids(scope)).is_empty():
        st.caption("No Xid in this time range.")
    else:
        named = xids.with_columns(pl.col("severity").str.replace_all("_", " "))
        tables.show(named, parts.XIDS, "xids", rows=6)
with panel("node_health.incidents"):
    if (incidents := health.incidents(scope)).is_empty():
        st.caption("No incident of a GPU in this time range.")
    else:
        of = ("cluster", "node", "device", "start_at")
        places.pick(incidents, parts.INCIDENTS, "incident", of, rows=6)
with panel("node_health.fabric_incidents"):
    if (fabric := health.fabric_incidents(scope)).is_empty():
        st.caption("No links failed together in this time range.")
    else:
        tables.show(fabric, parts.FABRIC, "fabric_incidents", rows=4)
with panel("node_health.repairs_of_nodes"):
    parts.repairs(health.repairs(scope))
with panel("node_health.outages_of_nodes"):
    if (outages := health.outages(scope)).is_empty():
        st.caption("No node was down or drained in this time range.")
    else:
        of = ("cluster", "node", "state", "start_at")
        places.pick(outages, parts.OUTAGES, "outage", of, rows=8)
with panel("node_health.drivers"):
    parts.drivers(health.drivers(scope))

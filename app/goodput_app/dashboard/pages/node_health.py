"""Health: what breaks, on which nodes, and what to do with them."""

import polars as pl
import streamlit as st

from goodput_app.dashboard.components import places, scope_bar
from goodput_app.dashboard.components.fleet import health_parts as parts
from goodput_app.dashboard.components.states import guarded, panel
from goodput_app.dashboard.data import failures, health

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
    places.table("failure.by_cause", failures.by_cause(scope))
with panel("node_health.xids_by_code"):
    named = pl.col("severity").str.replace_all("_", " ")
    places.table("health.xids", health.xids(scope).with_columns(named))
with panel("node_health.incidents"):
    places.table("health.incidents", health.incidents(scope))
with panel("node_health.fabric_incidents"):
    places.table("health.fabric", health.fabric_incidents(scope))
with panel("node_health.repairs_of_nodes"):
    parts.repairs(health.repairs(scope))
with panel("node_health.outages_of_nodes"):
    places.table("health.outages", health.outages(scope))
with panel("node_health.drivers"):
    parts.drivers(health.drivers(scope))

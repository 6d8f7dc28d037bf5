"""Health: what breaks, on which nodes, and what to do with them."""

import polars as pl
import streamlit as st

from goodput_app.dashboard.components import places, scope_bar
from goodput_app.dashboard.components.fleet import health_parts as parts
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import failures, health

view = scope_bar.required_view()
scope = view.scope

st.title("Health", anchor=False)
st.caption("What breaks, on which nodes, and what to do with them?")
fleet = health.fleet(scope)
if fleet.height == 1:
    with panel("", "marts.fleet_reliability"):
        parts.fleet(fleet)
with panel(
    "Nodes to act on, then by cost of their failures",
    "marts.node_health",
    help="First nodes to replace or drain, then by cost. A gang that fails counts on the node "
    "whose fault it was, with what all its GPUs lost.",
):
    parts.nodes(health.nodes(scope), scope)
if fleet.height != 1:
    with panel("Time between failures of nodes", "marts.fleet_reliability"):
        parts.fleet(fleet)
with panel("Errors by node and day", "marts.health_by_node_day"):
    parts.node_days(view)
with panel(
    "Time between failures by job size",
    "marts.reliability_by_job_size",
    help="Run time of attempts over the number that ended with an infrastructure cause.",
):
    if (sizes := health.by_job_size(scope)).is_empty():
        st.caption("No attempt with a known number of GPUs in this scope.")
    else:
        parts.by_job_size(sizes)
with panel(
    "Failures by job age",
    "marts.reliability_by_job_age",
    help="Early failures are of start-up and set-up; hardware fails at any age.",
):
    places.table("health.ages", health.by_job_age(scope))
with panel(
    "Time between failures by cause",
    "marts.reliability_by_cause",
    help="Run time of all attempts over the number that failed for this reason.",
):
    places.table("failure.by_cause", failures.by_cause(scope))
with panel("Xids by code", "marts.xids_by_code", help="Repeats in one incident count once."):
    named = pl.col("severity").str.replace_all("_", " ")
    places.table("health.xids", health.xids(scope).with_columns(named))
with panel(
    "Incidents",
    "marts.gpu_incidents",
    help="Events of one GPU with less than five minutes between them, by all sources.",
):
    places.table("health.incidents", health.incidents(scope))
with panel(
    "Fabric incidents",
    "marts.fabric_incidents",
    help="Links of several nodes, or NVLinks of several GPUs of a node, that failed at one time.",
):
    places.table("health.fabric", health.fabric_incidents(scope))
with panel(
    "Acts on nodes and jobs",
    "marts.acts",
    help="Repairs and drains of nodes; restarts, requeues and preemptions of jobs: what waited "
    "before somebody acted, what the act cost, and what it saved against leaving a node as it was.",
):
    parts.acts(health.acts_by_cause(scope), health.acts(scope))
with panel(
    "Outages of nodes",
    "marts.node_outages",
    help="States of a node that overlap are one outage, whichever sources report them.",
):
    places.table("health.outages", health.outages(scope))
with panel(
    "Silent corruption: evidence by node, not confirmed",
    "marts.silent_corruption",
    help="What a GPU that computes wrongly without an error could leave behind.",
):
    places.table("health.silent", health.silent_corruption(scope))
with panel("Drivers", "marts.driver_versions"):
    parts.drivers(health.drivers(scope))

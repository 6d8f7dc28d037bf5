"""How long job runs wait for GPUs: a part of the Runs page."""

import streamlit as st

from goodput_app.dashboard.components import scope_bar, tables
from goodput_app.dashboard.data import marts
from goodput_app.dashboard.table_columns import headers
from goodput_queries.scope import Scope

TEAM = "team"
GROUPS = {"size": "Size", "reason": "Reason"}
WAITS = headers("queue.waits")


def waits(scope: Scope) -> None:
    """Draw the waits by team, size or reason."""
    left, _ = st.columns([1, 4])
    with left:
        scope_bar.choice("waits", "Group by", GROUPS, none="Team")
    wanted = st.query_params.get("waits")
    group_by = wanted if wanted in GROUPS else TEAM
    found = marts.queue_waits(scope, group_by)
    if found.is_empty():
        st.caption("No job run of a scheduler started or waited for GPUs in this time range.")
        return
    tables.show(found, {"name": GROUPS.get(group_by, "Team"), **WAITS}, "queue-waits")
    st.caption(
        "Started: in the time range; waiting: at its end. A wait begins when the job is eligible."
    )

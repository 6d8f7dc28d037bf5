"""How long job runs wait for GPUs: a part of the Runs page."""

import streamlit as st

from goodput_app.dashboard.components import scope_bar, tables
from goodput_app.dashboard.data import marts
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units
from goodput_queries.scope import Scope

TEAM = "team"
GROUPS = {"size": "Size", "reason": "Reason"}
WAITS = headers("queue.waits")
ALWAYS = ("job_name", "queue", "gpus", "quota_gpus", "used_gpus")


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


def waiting(scope: Scope) -> None:
    """Draw the job runs that wait, those that wait for most GPU time first."""
    found = marts.job_waits(scope)
    if found.is_empty():
        return
    total = found["total"][0]
    text = f"{units.count(total, 'job')} waiting at the end of the time range"
    if found.height < total:
        text += f"; the table has the {found.height:,} that wait for most GPU time"
    st.caption(f"{text}.")
    tables.show(found, headers("queue.waiting").filled(found, ALWAYS), "queue-waiting", rows=8)


def quotas(scope: Scope) -> None:
    """Draw quota and use of the queues of Kueue and Volcano, where there are any."""
    found = marts.queue_quotas(scope)
    if found.is_empty():
        return
    st.subheader("GPU quota of queues", help="As each queue was listed last.", anchor=False)
    columns = headers("queue.quotas").filled(found, ALWAYS).of_clusters(found)
    tables.show(found, columns, "queue-quotas", rows=8)

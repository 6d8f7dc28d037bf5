"""Fleet: which GPUs, now and over time."""

import streamlit as st

from goodput_app.dashboard.components import flag_parts, scope_bar
from goodput_app.dashboard.components.fleet import fleet_parts
from goodput_app.dashboard.components.states import panel, require_all_teams
from goodput_app.dashboard.data import fleet

view = scope_bar.required_view()
st.title("Fleet", anchor=False)
st.caption("Which GPUs, now and over time?")
require_all_teams(view.scope)
flag_parts.summary()
if view.scope.team or view.scope.run:
    st.caption("All GPUs are shown: the team and run filters do not apply here.")
with panel("", "marts.gpu_states"):
    states = fleet.gpu_states(view.scope)
    show, sort, shown = fleet_parts.choose(states)
    if shown.is_empty():
        st.info("No GPU of this rack in this time range.", icon=":material/hourglass_empty:")
        st.button("All racks", on_click=scope_bar.go, args=({"rack": None},))
        st.stop()
with panel("GPUs by rack", "marts.gpu_states", help="At the end of the time range."):
    fleet_parts.grid(shown, show)
with panel(
    "Over time",
    "marts.node_category_bins",
    help="The same colours over the time range, and which runs had GPUs.",
):
    fleet_parts.over_time(view, shown, show, sort)
with panel("Racks", "marts.racks", help="Sums of the nodes of a rack in the time range."):
    fleet_parts.racks_table(fleet.racks(view.scope))
with panel(
    "Not allocated",
    "marts.unallocated_gpus",
    help="At the end of the time range: the largest block for a job, and why others are not free.",
):
    fleet_parts.unallocated_table(fleet.unallocated(view.scope))
with panel(
    "Active but not allocated",
    "marts.busy_unallocated",
    help="GPUs that were active without an allocation, on nodes of a scheduler.",
):
    fleet_parts.busy_table(fleet.busy_unallocated(view.scope))

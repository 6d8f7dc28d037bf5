"""Energy: what power the work took."""

import streamlit as st

from goodput_app.dashboard.components import energy_parts as parts
from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import energy

view = scope_bar.required_view()
st.title("Energy", anchor=False)
st.caption("What power did the work take?")
with panel("Power over time", "marts.power_over_time", help="Sum of the GPUs that were read."):
    parts.power(view)
with panel(
    "Energy and carbon by account",
    "marts.energy_by_account",
    help="By the GPUs' energy counters; cost and carbon with the overhead of server and site.",
):
    if view.scope.node:
        st.caption("Energy is stored by account: the filter of the node does not apply here.")
    parts.accounts(energy.accounts(view.scope))
with panel(
    "Idle power",
    "marts.idle_power",
    help="Mean of one GPU over ten minutes in which it was in the category all the time.",
):
    parts.idle(energy.idle(view.scope))
with panel(
    "Head-room",
    "marts.power_headroom",
    help="The highest readings of ten minutes against the power limit and slowdown temperature.",
):
    parts.headroom(energy.headroom(view.scope))

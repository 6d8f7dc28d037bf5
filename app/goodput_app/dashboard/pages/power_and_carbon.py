"""Energy: what power the work took."""

import streamlit as st

from goodput_app.dashboard.components import places, scope_bar
from goodput_app.dashboard.components.energy import energy_parts as parts
from goodput_app.dashboard.components.energy import energy_use_parts as use
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import energy

PARTS = {"": "Use", "idle": "Idle", "work": "Work", "limits": "Limits"}
OF_PICKS = {"headroom": "limits", "heat-margin": "limits", "idle-nodes": "idle"}

view = scope_bar.required_view()
st.title("Energy", anchor=False)
st.caption("What power did the work take?")
part = scope_bar.switch("part", "Part of the page", PARTS, of_picks=OF_PICKS)
if not part:
    with panel("Power over time", "marts.power_over_time", help="Sum of the GPUs that were read."):
        parts.power(view)
    with panel(
        "Energy and carbon by account",
        "marts.energy_by_account",
        help="By the GPUs' energy counters, or else their power; cost and carbon with the overhead "
        "of server and site.",
    ):
        if view.scope.node:
            st.caption("Energy is stored by account: the filter of the node does not apply here.")
        parts.accounts(energy.accounts(view.scope), view.scope)
elif part == "idle":
    with panel(
        "Idle power",
        "marts.idle_power",
        help="Mean of one GPU over ten minutes in which it was in the category all the time.",
    ):
        parts.idle(energy.idle(view.scope))
    with panel(
        "Idle nodes",
        "marts.idle_nodes",
        help="Wholly free until the end of the time range, and no job waits that could use them.",
    ):
        places.table("energy.idle_nodes", energy.idle_nodes(view.scope))
    with panel(
        "Executing idle",
        "marts.executing_idle",
        help="Allocated time in which a program used memory of the GPU and nothing "
        "ran. Power and energy are of ten minutes that were all idle.",
    ):
        use.executing(energy.executing(view.scope))
elif part == "work":
    with panel(
        "Energy of a step",
        "marts.run_energy",
        help="All energy of the run's GPUs, start-up and idle time too, for each retained step.",
    ):
        use.runs(energy.runs(view.scope))
    with panel(
        "Work per joule by power cap",
        "marts.work_by_power_cap",
        help="The same job under two caps: tokens, samples or steps for the energy of the GPUs.",
    ):
        use.caps(energy.by_cap(view.scope))
elif part == "limits":
    with panel(
        "Head-room",
        "marts.power_headroom",
        help="The highest readings of ten minutes against power limit and slowdown temperature.",
    ):
        parts.headroom(energy.headroom(view.scope))
    with panel(
        "Heat margin",
        "marts.heat_margin",
        help="Least distance of a GPU of the rack to its slowdown temperature.",
    ):
        use.heat(energy.heat(view.scope))
    with panel(
        "Power feeds",
        "marts.feed_check",
        help="What each feed carries, and would carry if the other feed of its nodes failed.",
    ):
        use.feeds(energy.feeds(view.scope))

"""Energy: what power the work took."""

import streamlit as st

from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.components.energy import energy_parts as parts
from goodput_app.dashboard.components.energy import energy_use_parts as use
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import energy

view = scope_bar.required_view()
st.title("Energy", anchor=False)
st.caption("What power did the work take?")
with panel("power_and_carbon.power_over_time"):
    parts.power(view)
with panel("power_and_carbon.energy_and_carbon_by_account"):
    if view.scope.node:
        st.caption("Energy is stored by account: the filter of the node does not apply here.")
    parts.accounts(energy.accounts(view.scope))
with panel("power_and_carbon.idle_power"):
    parts.idle(energy.idle(view.scope))
with panel("power_and_carbon.executing_idle"):
    use.executing(energy.executing(view.scope))
with panel("power_and_carbon.energy_of_a_step"):
    use.runs(energy.runs(view.scope))
with panel("power_and_carbon.work_per_joule_by_power_cap"):
    use.caps(energy.by_cap(view.scope))
with panel("power_and_carbon.head_room"):
    parts.headroom(energy.headroom(view.scope))
with panel("power_and_carbon.heat_margin"):
    use.heat(energy.heat(view.scope))
with panel("power_and_carbon.power_feeds"):
    use.feeds(energy.feeds(view.scope))

"""Compare: whether the new driver, image or commit slowed us down."""

import streamlit as st

from goodput_app.dashboard.components import places, scope_bar
from goodput_app.dashboard.components.runs import baseline_parts, note_parts
from goodput_app.dashboard.components.runs import compare_parts as parts
from goodput_app.dashboard.components.states import guarded, panel
from goodput_app.dashboard.data import speed

view = scope_bar.required_view()
st.title("Compare", anchor=False)
st.caption("Did the new driver, image or commit slow us down?")
sides = parts.runs(view) if parts.mode() == "" else parts.time_ranges(view)
found = None
if sides is not None:
    with guarded("marts.workload_runs"):
        found = speed.compared(*sides)
        parts.answer(found)
if found is not None:
    with panel("before_and_after.measures"):
        parts.measures(found)
        parts.files(found)
    with panel("before_and_after.what_differs"):
        parts.attributes(found)
    with panel("before_and_after.what_moved_the_goodput"):
        parts.ledger(found)
    with panel("before_and_after.step_time_and_speed"):
        parts.over_steps(found)
    with panel("before_and_after.notes"):
        note_parts.of_comparison(found, speed.run_notes(found))
with panel("before_and_after.changes_between_runs"):
    parts.changes(view)
with panel("before_and_after.baselines"):
    baseline_parts.baselines(speed.baselines(view.scope))
with panel("before_and_after.scaling"):
    baseline_parts.scaling(speed.scaling_efficiency(view.scope))
with panel("before_and_after.gpu_models"):
    places.table("baseline.speed_ups", speed.speed_ups(view.scope))
with panel("before_and_after.published_results"):
    baseline_parts.references(speed.reference_results(view.scope))

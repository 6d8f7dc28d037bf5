"""Compare: whether the new driver, image or commit slowed us down."""

import streamlit as st

from goodput_app.dashboard.components import places, scope_bar
from goodput_app.dashboard.components.runs import baseline_parts, note_parts
from goodput_app.dashboard.components.runs import compare_parts as parts
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import speed

view = scope_bar.required_view()
st.title("Compare", anchor=False)
st.caption("Did the new driver, image or commit slow us down?")
sides = parts.runs(view) if parts.mode() == "" else parts.time_ranges(view)
found = None
if sides is not None:
    with panel("", "marts.workload_runs"):
        found = speed.compared(*sides)
        parts.answer(found)
if found is not None:
    with panel(
        "Measures",
        "marts.workload_runs",
        help="The interval is of the change of speed; the other measures are sums of the ledger.",
    ):
        parts.measures(found)
        parts.files(found)
    with panel(
        "What differs", "marts.run_attributes", help="Code, versions and settings of both sides."
    ):
        parts.attributes(found)
    with panel(
        "What moved the goodput",
        "marts.run_categories",
        help="Shares of allocated time: more of a loss in B is less goodput.",
    ):
        parts.ledger(found)
    with panel(
        "Step time and speed",
        "marts.judged_steps",
        help="After the warm-up; by the number of the step, or by the work done since.",
    ):
        parts.over_steps(found)
    with panel("Notes", "marts.run_notes", help="Notes that people wrote on these runs."):
        note_parts.of_comparison(found, speed.run_notes(found))
with panel(
    "Changes between runs",
    "marts.version_changes",
    help="From a run to the next one with its job name, GPU model and number of GPUs.",
):
    parts.changes(view)
with panel(
    "Baselines",
    "marts.baselines",
    help="Runs of one workload. A row compares its last run with its fastest one.",
):
    baseline_parts.baselines(speed.baselines(view.scope))
with panel(
    "Scaling",
    "marts.scaling_efficiency",
    help="Speed a GPU against the smallest size of the workload on the same GPU model.",
):
    baseline_parts.scaling(speed.scaling_efficiency(view.scope))
with panel(
    "GPU models",
    "marts.gpu_model_speed_ups",
    help="The same workload and size on two models: your own runs, not a data sheet.",
):
    places.table("baseline.speed_ups", speed.speed_ups(view.scope))
with panel(
    "Work for cost and energy",
    "marts.work_by_gpu_model",
    help="Each workload on each GPU model and class of price, what gives most for its cost first.",
):
    places.table("baseline.work", speed.work_by_workload(view.scope))
with panel(
    "Published results",
    "marts.reference_results",
    help="MLPerf Training v4.0: jobs named like its benchmarks, on as many GPUs.",
):
    baseline_parts.references(speed.reference_results(view.scope))

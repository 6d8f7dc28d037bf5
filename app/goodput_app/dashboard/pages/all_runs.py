"""Runs: which lose most, and who waits."""

import polars as pl
import streamlit as st

from goodput_app.access.rows import sees_all
from goodput_app.dashboard.components import charts, details, scope_bar, states
from goodput_app.dashboard.components.rows import changes
from goodput_app.dashboard.components.runs import queue_parts, run_filters
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import findings, marts, run_axis, speed
from goodput_app.dashboard.figures import runs as figures_runs
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units

view = scope_bar.required_view()
scope = view.scope
COLUMNS = headers("all_runs.columns")

st.title("Runs", anchor=False)
st.caption("Which runs lose most? Who waits? Sorted by waste.")
states.runs_withheld(view)
runs = pl.DataFrame()
with panel("", "marts.runs"):
    runs, scope = run_filters.chosen(scope)
    changes.summary(scope)
with panel("Allocated GPU time of each run by category", "marts.run_categories"):
    if runs.is_empty():
        st.info("No run had GPUs in this time range.", icon=":material/hourglass_empty:")
    else:
        of_runs = pl.col("run_key").is_in(runs["run_key"].to_list())
        categories = marts.run_categories(scope).filter(of_runs)
        figure = figures_runs.run_ledgers(runs, categories)
        charts.draw(
            figure, categories.drop("colour"), "run-ledgers", "Categories of the most wasteful runs"
        )
if not runs.is_empty():
    with panel(
        "All runs", "marts.runs", help="Select a row for the verdict and the run's own page."
    ):
        rows = runs.join(speed.throughputs(scope), on="run_key", how="left")
        rows = rows.join(run_axis.useful_hours(scope), on="run_key", how="left")
        details.runs(rows, findings.run_verdicts(scope), COLUMNS)
        if (total := runs["total"][0]) > runs.height:
            st.caption(
                f"The {runs.height:,} of {total:,} runs that wasted most; `goodput runs --limit 0` "
                "prints all."
            )
        unpriced = runs.filter(pl.col("wasted_cost").is_null()).height
        if 0 < unpriced < runs.height:
            st.caption(f"{unpriced:,} runs have {units.NO_PRICE}.")
with panel("Queue waits", "marts.queue_waits", help="Of job runs that request GPUs."):
    queue_parts.waits(scope)
    queue_parts.waiting(scope)
if sees_all(scope):
    with panel("", "marts.queue_quotas"):
        queue_parts.quotas(scope)

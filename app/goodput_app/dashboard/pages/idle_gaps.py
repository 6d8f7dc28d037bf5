"""Waste: which gaps and losses, whose, why."""

import polars as pl
import streamlit as st

from goodput_app.dashboard.components import charts, details, places, scope_bar, telemetry_parts
from goodput_app.dashboard.components.findings import waste_parts
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import health, marts
from goodput_app.dashboard.figures import waste
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import throttling, units

view = scope_bar.required_view()
scope = view.scope
LEAST = {"5": "5 s", "30": "30 s", "60": "1 min", "300": "5 min", "1800": "30 min", "3600": "1 h"}

st.title("Waste", anchor=False)
st.caption("Which gaps and losses, whose, why?")
found = marts.idle_gaps(scope)
category = waste_parts.chosen_category(scope)
left, right, note = st.columns([1, 1, 3], vertical_alignment="bottom")
with left:
    scope_bar.choice("category", "Category", waste_parts.categories(scope))
with right:
    scope_bar.choice("least", "Gaps of at least", LEAST, none="any length")
waste_parts.changed(scope)
if category:
    waste_parts.intervals(scope, category)
if category == "idle_with_demand":
    waste_parts.waiting_jobs(scope)
gaps, sums = waste_parts.gaps_of(found, category)
if (least := st.query_params.get("least", "")) in LEAST:
    gaps = gaps.filter(pl.col("gap_s") >= float(least))
    sums = sums.filter(pl.col("least_s") >= float(least))
gaps = gaps.head(marts.GAPS_SHOWN)
number = int(sums["gaps"].sum())
with note:
    in_ledger = waste_parts.in_ledger(scope, category) if category and not least else None
    waste_parts.gap_count(gaps.height, number, int(sums["gpu_ms"].sum()), in_ledger)
if sums.is_empty() and not marts.has_telemetry(scope):
    st.info("No telemetry in this window: gaps are not known.", icon=":material/help:")
elif sums.is_empty():
    st.info("No gap of one second or more in this scope.", icon=":material/check_circle:")
else:
    beside = sums.filter("is_beside_work")
    if not beside.is_empty():
        st.warning(
            f"GPUs were idle while their jobs ran steps: "
            f"{units.count(int(beside['gaps'].sum()), 'gap')} of 5 min or more, "
            f"{units.gpu_time(int(beside['gpu_ms'].sum()))}. The ledger counts that time with the "
            "steps, because a job's steps count for all its GPUs; check whether it needs them.",
            icon=":material/person_alert:",
        )
    causes, lengths = st.columns([3, 2], gap="medium")
    with (
        causes,
        panel(
            "Causes of idle gaps, highest cost first",
            "marts.idle_gap_parts",
            help="Gaps are what readings show: time without readings is in the ledger alone.",
        ),
    ):
        figure = waste.causes(sums)
        drawn = sums.group_by("label").agg(pl.col("gaps", "gpu_ms", "cost").sum())
        charts.draw(
            figure, drawn.sort("gpu_ms", descending=True), "causes", "Idle GPU time by cause"
        )
    with lengths, panel("Gap length", "marts.idle_gap_parts"):
        figure = waste.gap_lengths(sums)
        drawn = sums.group_by("least_s").agg(pl.col("gaps", "gpu_ms").sum()).sort("least_s")
        charts.draw(figure, drawn, "lengths", "Gaps by length")
    if not category:
        waste_parts.periodic_gaps(scope)
        waste_parts.gang_gaps(scope, float(least) if least in LEAST else 0.0)
    with panel(
        "Gaps of single GPUs",
        "marts.idle_gaps",
        help="A stretch of no activity on one GPU, of 1 s or more, cut at the window.",
    ):
        details.gaps(gaps, headers("idle_gaps.gaps"), view)
episodes = pl.DataFrame()
with panel(
    "Throttling", "marts.throttle_episodes", help="A power cap at full power is no loss by itself."
):
    episodes = marts.throttle_episodes(scope)
    if episodes.is_empty():
        st.caption(throttling.empty_meaning(marts.throttle_sources(scope)))
    else:
        of = ("gpu_uuid", "reason", "start_at")
        shown = telemetry_parts.with_reasons(episodes)
        places.pick(shown, headers("idle_gaps.throttling"), "episode", of, rows=6)
if not episodes.is_empty():
    with panel(
        "Throttled GPUs",
        "marts.throttled_gpus",
        help="Whether throttling is passing or chronic, by all hours of the time "
        "range in which the GPU was read. Power caps are left out.",
    ):
        slowed = health.throttled_gpus(scope)
        slowed = slowed.filter(pl.col("gpu_uuid").is_in(episodes["gpu_uuid"].implode()))
        if slowed.is_empty():
            st.caption("No GPU was slowed by heat, the power brake or the board.")
        else:
            telemetry_parts.throttled_table(slowed, "throttled_gpus")

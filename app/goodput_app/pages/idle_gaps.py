"""Waste: which gaps and losses, whose, why."""

import polars as pl
import streamlit as st

from goodput_app import data, theme
from goodput_app.components import charts, details, figures_waste, scope_bar, tables
from goodput_app.components.states import panel

view = scope_bar.required_view()
scope = view.scope
LEAST = {"5": "5 s", "30": "30 s", "60": "1 min", "300": "5 min", "1800": "30 min", "3600": "1 h"}
GAPS = {
    "start_at": "Start",
    "gap_s": "Length",
    "node": "Node",
    "gpu_index": "GPU",
    "label": "Ledger",
    "cause": "Cause",
    "confidence": "Confidence",
    "run_id": "Run",
    "team": "Team",
    "gpu_ms": "GPU time",
    "usd": "Cost",
}
THROTTLING = {
    "start_at": "Start",
    "duration_s": "Length",
    "node": "Node",
    "gpu_index": "GPU",
    "reason": "Reason",
    "power_w": "Power",
    "power_limit_w": "Limit",
    "sm_clock_hz": "SM clock",
    "gpu_temperature_c": "Temperature",
    "booked_gpu_ms": "Booked as loss",
    "verdict": "Verdict",
}

st.title("Waste", anchor=False)
st.caption("Which gaps and losses, whose, why?")
gaps = data.idle_gaps(scope)
is_cut = gaps.height == data.GAPS_SHOWN
labels = dict(gaps.select("category", "label").unique().sort("label").iter_rows())
left, right, note = st.columns([1, 1, 3], vertical_alignment="bottom")
with left:
    scope_bar.choice("category", "Cause", labels)
with right:
    scope_bar.choice("least", "At least", LEAST, none="any length")
if category := st.query_params.get("category"):
    gaps = gaps.filter(pl.col("category") == category)
if (least := st.query_params.get("least", "")) in LEAST:
    gaps = gaps.filter(pl.col("gap_s") >= float(least))
note.caption(
    f"{theme.count(gaps.height, 'gap')}, {theme.gpu_time(int(gaps['gpu_ms'].sum()))} idle"
    + (f", of the {data.GAPS_SHOWN:,} dearest; all: `goodput gaps`." if is_cut else ".")
)
if gaps.is_empty() and not data.has_telemetry(scope):
    st.info("No telemetry in this window: gaps are not known.", icon=":material/help:")
elif gaps.is_empty():
    st.info("No gap of one second or more in this scope.", icon=":material/check_circle:")
else:
    causes, lengths = st.columns([3, 2], gap="medium")
    with causes, panel("Causes of idle gaps, dearest first", "marts.idle_gaps"):
        sums = gaps.group_by("label").agg(pl.len().alias("gaps"), pl.col("gpu_ms", "usd").sum())
        figure = figures_waste.causes(gaps)
        charts.draw(
            figure, sums.sort("gpu_ms", descending=True), "causes", "Idle GPU time by cause"
        )
    with lengths, panel("How long they are", "marts.idle_gaps"):
        figure = figures_waste.gap_lengths(gaps)
        charts.draw(figure, gaps.select("gap_id", "gap_s", "gpu_ms"), "lengths", "Gaps by length")
    with panel(
        "Gaps", "marts.idle_gaps", help="A stretch of no activity on one GPU, of 1 s or more."
    ):
        details.gaps(gaps, GAPS, view)
with panel(
    "Throttling", "marts.throttle_episodes", help="A power cap at full power is no loss by itself."
):
    episodes = data.throttle_episodes(scope)
    if episodes.is_empty():
        st.caption("No slowdown reason was reported, or no source reports them.")
    else:
        tables.show(episodes, THROTTLING, "throttling", rows=6)

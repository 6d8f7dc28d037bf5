"""Parts of the Energy page about what energy did: steps, caps, idle programs, heat margins."""

import polars as pl
import streamlit as st

from goodput_app.dashboard.components import places, tables
from goodput_app.dashboard.table_columns import headers

EXECUTING = headers("energy_use.executing")
RUNS = headers("energy_use.runs")
CAPS = headers("energy_use.caps")
HEAT = headers("energy_use.heat")


FEEDS = headers("energy_use.feeds")
NO_FEEDS = (
    "Not configured: power feeds. Name the feed of each node in the inventory (`1A1+1B1`: on both):"
)
FEEDS_EXAMPLE = "node,rack,row,feed\nnode001,r07,B,1A1+1B1"
NO_CAPACITY = "Not configured: capacity of the feeds. Write it to a CSV file:"
CAPACITY_EXAMPLE = "feed,capacity_kw,server_ratio\n1A1,17.3,1.4\n1B1,17.3,1.4"


def feeds(frame: pl.DataFrame) -> None:
    """Draw the load of feeds, and what each carries if another fails."""
    if frame.is_empty():
        not_configured(NO_FEEDS, FEEDS_EXAMPLE, "goodput ingest inventory racks.csv")
        return
    if frame["peak_w"].null_count() == frame.height:
        st.caption("No power reading of the nodes on these feeds in this time range.")
    state = (
        pl.when(pl.col("peak_w").is_null())
        .then(pl.lit("not read"))
        .when("is_exceeded")
        .then(pl.lit("over capacity"))
        .when(pl.col("capacity_w").is_null())
        .then(pl.lit("capacity unknown"))
        .when(pl.col("failover_w").is_null())
        .then(pl.lit("no second feed"))
        .otherwise(pl.lit("holds"))
    )
    stated = frame.with_columns(state=state)
    tables.show(stated, FEEDS.of_clusters(stated), "feeds")
    if frame["capacity_w"].null_count() == frame.height:
        not_configured(NO_CAPACITY, CAPACITY_EXAMPLE, "goodput ingest power-feeds feeds.csv")
    alone = "of the GPUs alone" if (frame["server_ratio"] == 1).all() else "of the servers"
    st.caption(
        f"Means of ten minutes, {alone}; a node on two feeds draws half from each. Nodes without "
        "readings add nothing: the load is then a lower bound."
    )


def executing(frame: pl.DataFrame) -> None:
    """Draw the energy of programs that were loaded and did nothing."""
    if frame.is_empty():
        st.caption("No program that used memory of a GPU did nothing.")
        return
    named = frame.with_columns(label=pl.col("team").fill_null("Account unknown"))
    tables.show(named, EXECUTING.of_clusters(named), "executing-idle")


def runs(frame: pl.DataFrame) -> None:
    """Draw the energy of a step; a picked run has a link."""
    if frame["step_energy_wh"].null_count() == frame.height:
        st.caption(
            "No run has both: steps in its job events, and energy counters for half of its time."
        )
        return
    measured = frame.with_columns(
        run_name=pl.coalesce("job_name", "run_id"),
        measured_ratio=pl.col("measured_ms") / pl.col("held_ms"),
    )
    places.pick(measured, RUNS.of_clusters(measured), "run-energy", ("run_key",))


def caps(frame: pl.DataFrame) -> None:
    """Draw work per joule by power cap, of jobs that ran under two."""
    if frame.is_empty():
        st.caption(
            "No job of one name, model and size has whole hours of steps under two power caps. "
            "Caps are read from DCGM_FI_DEV_ENFORCED_POWER_LIMIT or by NVML."
        )
        return
    scaled = frame.with_columns(
        (pl.col(name) * 1000).alias(name.replace("_per_j", "_per_kj"))
        for name in ("work_per_j", "work_per_j_low", "work_per_j_high")
    )
    of = st.column_config.NumberColumn
    wide = {
        **{name: of(CAPS[name], format="%.4g") for name in CAPS if "_per_" in name},
        "power_cap_w": of("Power cap, W", format="%,.0f"),
    }
    tables.show(scaled, CAPS.of_clusters(scaled), "work-by-cap", wide=wide)
    st.caption("Hours of which steps fill at least 90 %, with all energy measured: mean, p10, p90.")


def heat(frame: pl.DataFrame) -> None:
    """Draw the heat margin of each rack; a picked one has links to its hottest node."""
    if frame["slowdown_margin_c"].null_count() == frame.height:
        st.caption(
            "Not configured: temperature, or slowdown temperature (DCGM_FI_DEV_SLOWDOWN_TEMP)."
        )
        return
    named = frame.with_columns(
        rack=pl.col("rack").fill_null("Rack unknown"), node=pl.col("hottest_node")
    )
    places.pick(named, HEAT.of_clusters(named), "heat-margin", ("cluster", "rack"))


def not_configured(text: str, *lines: str) -> None:
    """Say what is not configured, with the lines that add it."""
    st.caption(text)
    for line in lines:
        st.code(line, language="text")

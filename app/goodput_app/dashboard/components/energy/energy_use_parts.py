"""Parts of the Energy page about what energy did: steps, caps, idle programs, heat margins."""

import polars as pl
import streamlit as st

from goodput_app.dashboard.components import places

NO_CAPACITY = "Not configured: capacity of the feeds. Write it to a CSV file:"
CAPACITY_EXAMPLE = "feed,capacity_kw,server_ratio\n1A1,17.3,1.4\n1B1,17.3,1.4"


def feeds(frame: pl.DataFrame) -> None:
    """Draw the load of feeds, and what each carries if another fails."""
    if frame.height and frame["peak_w"].null_count() == frame.height:
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
    if not places.table("energy_use.feeds", frame.with_columns(state=state)):
        return
    if frame["capacity_w"].null_count() == frame.height:
        not_configured(NO_CAPACITY, CAPACITY_EXAMPLE, "goodput ingest power-feeds feeds.csv")
    alone = "of the GPUs alone" if (frame["server_ratio"] == 1).all() else "of the servers"
    st.caption(
        f"Means of ten minutes, {alone}; a node on two feeds draws half from each. Nodes without "
        "readings add nothing: the load is then a lower bound."
    )


def executing(frame: pl.DataFrame) -> None:
    """Draw the energy of programs that were loaded and did nothing."""
    named = frame.with_columns(label=pl.col("team").fill_null("Account unknown"))
    places.table("energy_use.executing", named)


def runs(frame: pl.DataFrame) -> None:
    """Draw the energy of a step; a picked run has a link."""
    measured = frame.with_columns(
        run_name=pl.coalesce("job_name", "run_id"),
        measured_ratio=pl.col("measured_ms") / pl.col("held_ms"),
    )
    places.table("energy_use.runs", measured)


def caps(frame: pl.DataFrame) -> None:
    """Draw work per joule by power cap, of jobs that ran under two."""
    scaled = frame.with_columns(
        (pl.col(name) * 1000).alias(name.replace("_per_j", "_per_kj"))
        for name in ("work_per_j", "work_per_j_low", "work_per_j_high")
    )
    places.table("energy_use.caps", scaled)


def heat(frame: pl.DataFrame) -> None:
    """Draw the heat margin of each rack; a picked one has links to its hottest node."""
    named = frame.with_columns(
        rack=pl.col("rack").fill_null("Rack unknown"), node=pl.col("hottest_node")
    )
    places.table("energy_use.heat", named)


def not_configured(text: str, *lines: str) -> None:
    """Say what is not configured, with the lines that add it."""
    st.caption(text)
    for line in lines:
        st.code(line, language="text")

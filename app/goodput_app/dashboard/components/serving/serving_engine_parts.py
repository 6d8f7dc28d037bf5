"""Parts of the Serving page about single engines and the tenants of request logs."""

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import places, tables
from goodput_app.dashboard.table_columns import Columns, headers

ENGINE = "serving_engine"
TENANTS = headers("serving_engine.tenants")
METRICS = headers("serving_engine.metrics")
CAUSES = headers("serving_engine.causes")
NO_SPIKES = "No latency spike: no p95 of five minutes was twice the usual one."
NO_REQUESTS = (
    "No request log was ingested: it has the exact time of each request of a tenant. "
    "`goodput ingest auto FILE` reads the logs of gateways and load generators."
)


def ids(engines: pl.DataFrame) -> pl.Series:
    """Return what a row is known by in the URL."""
    return engines.select(
        pl.concat_str("cluster", "endpoint", "engine", "model", separator="|")
    ).to_series()


def engines(frame: pl.DataFrame) -> None:
    """Draw engines with cache, queue and GPUs; a picked one has links to GPU, node and run."""
    shown = frame.with_columns(
        queue_ratio=pl.col("queue_ms") / pl.col("observed_ms"),
        idle_ratio=pl.col("idle_ms") / pl.col("observed_ms"),
        engine=pl.when(pl.col("engine") != "").then("engine"),
        role=pl.when(pl.col("role") != "").then("role"),
    )
    names = reported(shown, headers("serving_engine.engines"))
    picked = tables.pick(shown, names, ENGINE, ids(frame))
    rest(frame, "engines")
    if picked is None:
        st.caption("Select a row for links to its GPU, node and run.")
    else:
        places.facts(picked, names.details)
        places.links(picked)


def tenants(frame: pl.DataFrame, of_engines: pl.DataFrame) -> None:
    """Draw tenants, the slowest first; a picked row selects its slowest engine."""
    if frame.is_empty():
        st.caption(NO_REQUESTS)
        return
    known = {(row["cluster"], row["endpoint"]): row for row in of_engines.iter_rows(named=True)}
    named = dict(zip(of_engines.select("cluster", "endpoint").rows(), ids(of_engines), strict=True))
    shown = frame.with_columns(tenant=pl.col("tenant").fill_null("not named"))
    slowest = shown.select("cluster", "slowest_endpoint").rows()
    opens = [{ENGINE: named.get(place)} for place in slowest]
    keys = shown.select(pl.concat_str("cluster", "model", "tenant", separator="|")).to_series()
    tables.pick(shown, reported(shown, TENANTS), "tenant", keys, opens=opens)
    rest(frame, "tenants")
    st.caption("Select a row to mark its slowest engine above, with links to GPU, node and run.")
    place, tenant = next(
        ((p, t) for p, t in zip(slowest, shown["tenant"], strict=True) if p in known), (None, "")
    )
    if place is not None:
        name, endpoint = (theme.markdown_text(text, 60) for text in (tenant, place[1]))
        st.markdown(f"Slowest tenant: **{name}**, slowest at {endpoint}")
        places.links(known[place])


def spikes(frame: pl.DataFrame) -> None:
    """Draw latency spikes with their causes; a picked row selects its engine."""
    if frame.is_empty():
        st.caption(NO_SPIKES)
        return
    shown = frame.with_columns(
        duration_s=(pl.col("end_ms") - pl.col("start_ms")) / 1000,
        engine=pl.when(pl.col("engine") != "").then("engine"),
        metric_label=pl.col("metric").replace_strict(METRICS),
        cause_label=pl.col("cause").replace_strict(CAUSES).fill_null("none found"),
    )
    engine = ids(frame)
    keys = frame.select(
        pl.concat_str(engine.alias("of"), pl.col("start_ms").cast(pl.String), separator="|")
    ).to_series()
    names = reported(shown, headers("serving_engine.spikes"))
    tables.pick(shown, names, "spike", keys, opens=[{ENGINE: one} for one in engine])
    rest(frame, "spikes")
    st.caption(
        "What happened in a spike or up to two minutes before it: a cause as far as time shows it. "
        "Pauses of a program (garbage collection, context switches) are not measured. Select a row "
        "to mark its engine, with links to GPU, node and run."
    )


def rest(frame: pl.DataFrame, what: str) -> None:
    """Say of how many rows a table has the first ones, where it does not have all."""
    rows = frame["rows_in_all"].max() if frame.height else 0
    if isinstance(rows, int) and rows > frame.height:
        st.caption(f"The first {frame.height:,} of {rows:,} {what}; choose a served model.")


def reported(frame: pl.DataFrame, names: Columns) -> Columns:
    """Return the columns that say something: of one cluster not its name, none without a value."""
    return names.of_clusters(frame).filled(frame)

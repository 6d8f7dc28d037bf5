"""Collectives on the Network page: by algorithm and protocol, and their latency and bandwidth."""

import math
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, tables
from goodput_app.dashboard.data import network
from goodput_app.dashboard.figures import network as figures
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units
from goodput_queries.scope import Scope

ALGORITHMS = headers("network.algorithms")
NO_ALGORITHMS = (
    "Algorithm and protocol are not known. Set `NCCL_DEBUG=INFO` and "
    "`NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH,TUNING` beside NCCL Inspector, or use its Prometheus mode "
    "(NCCL 2.30)."
)
NO_FITS = (
    "Not known: it takes four sizes of an operation that are a factor of 16 apart, from NCCL "
    "Inspector or nccl-tests."
)


def algorithms(scope: Scope) -> None:
    """Draw the bus bandwidth by algorithm and protocol, where a source has them."""
    found = network.algorithms(scope)
    if found.is_empty():
        st.caption(NO_ALGORITHMS)
        return
    sizes = [units.size(size) for size in found["size_from_bytes"]]
    shown = found.with_columns(
        pl.Series("size", sizes, dtype=pl.String), time_us=_microseconds("p50_exec_s")
    )
    columns = ALGORITHMS.hiding(["nodes"]) if shown["offload_gain_ratio"].count() else ALGORITHMS
    tables.show(shown, columns, "algorithms", rows=8)
    st.caption(
        "Operations: the rank that waited least. Means: of a GPU over a window, waits for late "
        "ranks included."
    )


def tiers(scope: Scope) -> None:
    """Say how much of the collectives' traffic stays inside of nodes."""
    found = network.tiers(scope).rows()
    inside = [f"{theme.markdown_text(name)} {units.percent(ratio)}" for name, ratio in found]
    if inside:
        st.caption(f"Bytes of collectives that stay inside a node: {', '.join(inside)}.")


def times(scope: Scope) -> None:
    """Draw latency and bandwidth by operation, and one of them with its points and forecasts."""
    found = network.fits(scope)
    if found.is_empty():
        st.caption(NO_FITS)
        return
    halves = [units.size(2 ** round(math.log2(max(size, 1)))) for size in found["half_bytes"]]
    shown = found.with_columns(
        pl.Series("half_size", halves, dtype=pl.String), latency_us=_microseconds("latency_s")
    )
    tables.show(shown, headers("network.fits"), "collective_fits", rows=6)
    rows = {row["shape"]: row for row in found.iter_rows(named=True)}
    shape = st.selectbox(
        "Operation", list(rows), format_func=lambda key: _name(rows[key]), key="network_fit"
    )
    points, forecasts = network.collective_times(scope, shape)
    charts.draw(
        figures.times(points, forecasts), forecasts.drop("shape"), "collective-times",
        "Time of a collective by message size, measured, fitted and for more ranks",
    )  # fmt: skip
    st.caption(_basis(rows[shape], forecasts.filter(pl.col("forecast_ranks") > pl.col("ranks"))))


def _basis(fit: dict[str, Any], forecasts: pl.DataFrame) -> str:
    """Return what the forecasts for more ranks rest on, and how far they were wrong."""
    if forecasts.is_empty():
        return (
            "No forecast for more GPUs: links inside a node are not those between nodes."
            if fit["nodes"] == 1
            else "No forecast for more GPUs: this operation does not run in a ring."
        )
    before, error = fit["tested_from_ranks"], fit["scaling_error_ratio"]
    return "Forecasts are of a ring, with as many GPUs a node; trees have less latency. " + (
        "No second number of ranks was measured: how the times scale is not tested."
        if before is None
        else f"One from {before:,} ranks missed the times of {fit['ranks']:,} by "
        f"{units.percent(error)}; larger steps are not tested."
    )


def _name(fit: dict[str, Any]) -> str:
    model = theme.printable(fit["gpu_model"] or "GPU model not known")
    where = f"{units.count(fit['ranks'], 'rank')} on {units.count(fit['nodes'], 'node')}"
    return f"{theme.printable(fit['operation'])}, {where}, {model}, {fit['measured_by']}"


def _microseconds(column: str) -> pl.Expr:
    return (pl.col(column) * 1e6).round(1)

"""Collectives on the Network page: by algorithm and protocol, and their latency and bandwidth."""

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
ALGORITHMS_HIDDEN = ("cluster", "nodes", "offload_gain_ratio")
FITS = headers("network.fits")
FORECASTS = headers("network.forecasts")
NO_ALGORITHMS = (
    "Algorithm and protocol are not known. Set `NCCL_DEBUG=INFO` and "
    "`NCCL_DEBUG_SUBSYS=INIT,NET,TUNING` beside NCCL Inspector, or use its Prometheus mode "
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
    gains = shown["offload_gain_ratio"].count()
    hidden = [c for c in ALGORITHMS_HIDDEN if not (gains and c == "offload_gain_ratio")]
    tables.show(shown, ALGORITHMS, "algorithms", rows=8, hidden=hidden)
    st.caption(
        "Operations: the rank that waited least. Means: of a GPU over a window, waits for late "
        "ranks included."
    )


def times(scope: Scope) -> None:
    """Draw latency and bandwidth by operation, and one of them with its points and forecasts."""
    found = network.fits(scope)
    if found.is_empty():
        st.caption(NO_FITS)
        return
    halves = [_about(size) for size in found["half_bytes"]]
    shown = found.with_columns(
        pl.Series("half_size", halves, dtype=pl.String), latency_us=_microseconds("latency_s")
    )
    tables.show(shown, FITS, "collective_fits", rows=6, hidden=("cluster",))
    rows = {row["fit"]: row for row in found.iter_rows(named=True)}
    fit = rows[
        st.selectbox(
            "Operation", list(rows), format_func=lambda n: _name(rows[n]), key="network_fit"
        )
    ]
    points, forecasts = network.collective_times(scope, fit)
    charts.draw(
        figures.times(points, forecasts, fit["ranks"]), points, "collective-times",
        "Time of a collective by message size, measured and fitted",
    )  # fmt: skip
    _forecasts(fit, forecasts.filter(pl.col("forecast_ranks") > fit["ranks"]))


def _forecasts(fit: dict[str, Any], found: pl.DataFrame) -> None:
    """Draw the forecasts of the largest size, and what they rest on."""
    if found.is_empty():
        st.caption(
            "No forecast for more GPUs: it was measured inside one node, whose links are not those "
            "between nodes."
        )
        return
    largest = found.filter(pl.col("size_bytes") == found["size_bytes"].max())
    shown = largest.with_columns(
        size=pl.lit(units.size(int(largest["size_bytes"][0]))),
        forecast_us=_microseconds("forecast_s"),
        error=pl.Series(
            ["not tested" if e is None else units.percent(e) for e in largest["error_ratio"]]
        ),
    )
    tables.show(shown, FORECASTS, "collective_forecasts")
    st.caption(
        "As a ring over the same links with as many GPUs a node; NCCL may choose a tree, whose "
        "latency grows less. "
        + (
            "No second number of ranks was measured: how the times scale is not tested."
            if fit["scaling_error_ratio"] is None
            else f"Error: what a forecast from {fit['tested_from_ranks']:,} ranks missed at "
            f"{fit['ranks']:,}."
        )
    )


def _name(fit: dict[str, Any]) -> str:
    model = theme.printable(fit["gpu_model"] or "GPU model not known")
    where = f"{units.count(fit['ranks'], 'rank')} on {units.count(fit['nodes'], 'node')}"
    return f"{theme.printable(fit['operation'])}, {where}, {model}, {fit['measured_by']}"


def _microseconds(column: str) -> pl.Expr:
    return (pl.col(column) * 1e6).round(1)


def _about(size_bytes: int) -> str:
    """Return a size with two digits: a fit has no more."""
    digits = len(str(size_bytes)) - 2
    unit = 1 << max(0, size_bytes.bit_length() - 1) // 10 * 10
    return units.size(float(f"{round(size_bytes, -digits) / unit:.2g}") * unit)

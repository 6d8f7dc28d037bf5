"""The numbers at the top of a page, each with its denominator and its definition one hover away."""

from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.text import glossary, headline, units

Row = dict[str, Any]


def of_allocation(summary: Row, losing: pl.DataFrame) -> None:
    """Draw how much of the capacity was allocated and active, and what is lost at the end.

    summary: a row of marts.goodput_summary; losing: rows of marts.losing_now
    """
    with st.container(key="tiles"):
        columns = st.columns(4)
    with columns[0]:
        cost = units.cost(summary["capacity_cost"])
        tile("Capacity", units.gpu_time(summary["capacity_ms"]), cost)
    with columns[1]:
        shown = f"{units.gpu_time(summary['held_ms'])} allocated"
        tile("Allocated (% of available)", units.percent(summary["allocation_ratio"]), shown)
    with columns[2]:
        shown = f"{units.gpu_time(summary['inactive_ms'])} idle or waiting"
        tile("Active (% of allocated)", units.percent(summary["active_ratio"]), shown)
    with columns[3]:
        per_h = float(losing["cost_per_h"].sum()) if losing["cost_per_h"].count() else None
        shown = f"{losing['gpus'].sum():,.0f} GPUs that do nothing useful"
        tile("Lost per hour", units.cost(per_h), shown)


def of_run(run: Row) -> None:
    """Draw the tiles of a run. run: its row of marts.runs."""
    with st.container(key="tiles"):
        columns = st.columns(5)
    with columns[0]:
        value, bound = headline.of_run(run)
        missing = headline.NOT_IN_STEPS if run["step_unsplit_ms"] else ""
        tile(
            "Goodput (% of allocated)",
            value,
            "; ".join(filter(None, (bound, missing))) or "all time is classified",
        )
    with columns[1]:
        share = (
            units.percent(run["wasted_ms"] / run["held_ms"]) if run["held_ms"] else units.NOT_KNOWN
        )
        wasted = f"{units.gpu_time(run['wasted_ms'])} = {share}"
        tile("Wasted", units.cost(run["wasted_cost"], beside=[run["cost"]]), wasted)
    with columns[2]:
        tile(
            "Allocated",
            units.gpu_time(run["held_ms"]),
            f"{units.cost(run['cost'])}, {units.count(run['gpus'], 'GPU')}",
        )
    with columns[3]:
        tile(
            "ETTR (of wall clock)",
            units.percent(run["ettr_ratio"]),
            "whole run, queue included",
        )
    with columns[4]:
        runs = (
            f"{units.count(run['attempts'], 'attempt')}, {units.count(run['job_runs'], 'job run')}"
        )
        tile("Restarts", f"{run['restarts']:,}", runs)


def tile(label: str, value: str, second: str) -> None:
    """Draw a tile: a measure of the glossary, its value, and what it is of."""
    with st.container(border=True, height="stretch", gap="xsmall"):
        st.metric(label, theme.markdown_text(value), help=glossary.hover(label))
        st.caption(theme.markdown_text(second))

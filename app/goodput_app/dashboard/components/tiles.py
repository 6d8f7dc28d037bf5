"""The numbers at the top of a page, each with its denominator and its definition one hover away."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.text import glossary, headline, units

Row = dict[str, Any]
Tile = tuple[str, str, str]  # a measure, its value, what it is of or why it is not known


def row(key: str, cells: Sequence[Tile], most: int = 0) -> None:
    """Draw tiles side by side, in as many columns or `most`; key: of their container."""
    with st.container(key=key):
        columns = st.columns(max(len(cells), most))
    for column, cell in zip(columns, cells, strict=False):
        with column:
            tile(*cell)


def of_allocation(summary: Row, losing: pl.DataFrame) -> None:
    """Draw how much of the capacity was allocated and active, and what is lost at the end.

    summary: a row of marts.goodput_summary; losing: rows of marts.losing_now
    """
    allocated, waiting = (units.gpu_time(summary[name]) for name in ("held_ms", "inactive_ms"))
    per_h = float(losing["cost_per_h"].sum()) if losing["cost_per_h"].count() else None
    row("tiles", [
        ("Capacity", units.gpu_time(summary["capacity_ms"]), units.cost(summary["capacity_cost"])),
        ("Allocated (% of available)", units.percent(summary["allocation_ratio"]),
         f"{allocated} allocated"),
        ("Active (% of allocated)", units.percent(summary["active_ratio"]),
         f"{waiting} idle or waiting"),
        ("Lost per hour", units.cost(per_h),
         f"{losing['gpus'].sum():,.0f} GPUs that do nothing useful"),
    ])  # fmt: skip


def of_ratios(summary: Row) -> None:
    """Draw the three ratios whose product is goodput. summary: a row of marts.goodput_summary."""
    low, high = (units.percent(summary[f"runtime_{end}_ratio"]) for end in ("lo", "hi"))
    bound = "" if high in (low, units.NOT_KNOWN) else f"up to {high} {headline.IF_ALL}"
    shown = (
        (
            "Scheduling ratio",
            summary["scheduling_ratio"],
            "scheduler",
            "complete gangs, of capacity",
        ),
        ("Runtime ratio", summary["runtime_lo_ratio"], "runtime", bound or "retained steps"),
        ("Program ratio", summary["program_ratio"], "program", "useful part of retained steps"),
    )
    row("ratio-tiles", [
        (name, units.NOT_MEASURED if value is None else units.percent(value),
         (summary[f"{of}_reason"] or second).removeprefix(f"{units.NOT_MEASURED} "))
        for name, value, of, second in shown
    ])  # fmt: skip


def of_run(run: Row, *, is_serving: bool = False) -> None:
    """Draw the tiles of a run. run: its row of marts.runs; is_serving: it has no steps."""
    value, bound = headline.of_run(run)
    missing = headline.NOT_IN_STEPS if run["step_unsplit_ms"] and not is_serving else ""
    open_ratio = run["unsettled_ms"] / run["held_ms"] if run["held_ms"] else 0
    unclassified = f"{units.percent(open_ratio)} unclassified" if open_ratio and not bound else ""
    share = units.percent(run["wasted_ms"] / run["held_ms"]) if run["held_ms"] else units.NOT_KNOWN
    attempts, runs = (
        units.count(run["attempts"], "attempt"),
        units.count(run["job_runs"], "job run"),
    )
    row("tiles", [
        ("Goodput (% of allocated)", value,
         "; ".join(filter(None, (bound or unclassified, missing)))
         or "all time is classified"),
        ("Wasted", units.cost(run["wasted_cost"], beside=[run["cost"]]),
         f"{units.gpu_time(run['wasted_ms'])} = {share}"),
        ("Allocated", units.gpu_time(run["held_ms"]),
         f"{units.cost(run['cost'])}, {units.count(run['gpus'], 'GPU')}"),
        ("ETTR (of wall clock)", units.percent(run["ettr_ratio"]), "whole run, queue included"),
        ("Restarts", f"{run['restarts']:,}", f"{attempts}, {runs}"),
    ])  # fmt: skip


def tile(label: str, value: str, second: str) -> None:
    """Draw a tile: a measure of the glossary, its value, and what it is of."""
    with st.container(border=True, height="stretch", gap="xsmall"):
        st.metric(label, theme.markdown_text(value), help=glossary.hover(label))
        st.caption(theme.markdown_text(second))

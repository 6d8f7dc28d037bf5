"""The numbers at the top of a page, each with its denominator and its definition one hover away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.text import glossary, headline, units

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

Row = dict[str, Any]
LINE_MIN = 3  # values
LINE_STEPS = 100


def of_fleet(
    summary: Row,
    first: headline.Headline,
    before: Row | None,
    change: str | None,
    over_time: pl.DataFrame,
) -> DeltaGenerator:
    """Draw the tiles of the Overview, with what changed since the window before, where known.

    Return where the sixth one is to be drawn (`runs_at_risk`): findings take longer.

    summary, before: rows of marts.goodput_summary. change: of the first tile.
    over_time: marts.goodput_over_time, in order
    """
    then = before or {}

    def line(*columns: str) -> list[float]:
        return _line(over_time, *columns)

    notes = "; ".join([*([first.bound] if first.bound else []), *first.notes])
    wasted = f"{units.gpu_time(summary['wasted_ms'])} = {_share(summary, 'wasted_ms')}"
    inactive = units.gpu_time(summary["inactive_ms"])
    with st.container(key="tiles"):
        columns = st.columns([1.15, 0.95, 1.05, 1.25, 1.25, 0.6], gap="small")
    with columns[0]:
        of_steps = line("goodput_ratio") if first.rung == "goodput" else None
        tile(first.label, first.text, notes, change, line=of_steps)
    amounts = (summary["wasted_cost"], summary["capacity_cost"])
    lost, cost = (units.cost(amount, beside=amounts) for amount in amounts)
    with columns[1]:
        grown, drawn = _growth(summary, then, "wasted_cost"), line("wasted_cost", "wasted_ms")
        tile("Wasted", lost, wasted, grown, "inverse", line=drawn)
    with columns[2]:
        shown = units.gpu_time(summary["capacity_ms"])
        grown = _growth(summary, then, "capacity_ms")
        tile("Capacity", shown, cost, grown, "off", line=line("capacity_ms"))
    with columns[3]:
        tile(
            "Allocated (% of available)",
            units.percent(summary["allocation_ratio"]),
            f"{units.gpu_time(summary['held_ms'])} allocated",
            _points(summary, then, "allocation_ratio"),
            "off",
            line=line("allocation_ratio"),
        )
    with columns[4]:
        tile(
            "Active (% of allocated)",
            units.percent(summary["active_ratio"]),
            f"{inactive} idle or waiting",
            _points(summary, then, "active_ratio"),
            line=line("active_ratio"),
        )
    return columns[5]


def runs_at_risk(findings: pl.DataFrame, summary: Row) -> None:
    """Draw the tile of runs that have an open finding.

    findings: rows of marts.findings. summary: a row of marts.goodput_summary.
    """
    is_at_risk = pl.col("is_open") & (pl.col("severity") != "note")
    runs = findings.filter(is_at_risk)["run_key"].drop_nulls().n_unique()
    of_all = f"of {units.count(summary['runs'], 'run')} on {units.count(summary['gpus'], 'GPU')}"
    tile("Runs at risk", f"{runs:,}", of_all)


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


def _share(summary: Row, name: str) -> str:
    return units.percent(summary[name] / summary["capacity_ms"] if summary["capacity_ms"] else None)


def _line(over_time: pl.DataFrame, *columns: str) -> list[float]:
    """Return the values of the first of these columns that has some; too few draw no line."""
    for column in columns:
        values = over_time[column].drop_nulls()
        if values.len() >= LINE_MIN:
            return _even(values.cast(pl.Float64))
    return []


def _even(values: pl.Series) -> list[float]:
    """Return values in steps of a hundredth of the largest: a line of less looks like a cliff."""
    step = float(values.abs().max() or 0) / LINE_STEPS  # type: ignore[arg-type]
    return ((values / step).round() * step).to_list() if step else values.to_list()


def points(now: float | None, then: float | None) -> str | None:
    """Return by how many percentage points a ratio changed; None: that is not known."""
    return None if now is None or then is None else _signed(100 * (now - then), "pts")


def _points(now: Row, then: Row, name: str) -> str | None:
    """Return by how many percentage points a ratio changed; None: that is not known."""
    return points(now[name], then.get(name))


def _growth(now: Row, then: Row, name: str) -> str | None:
    """Return by how many percent an amount changed; None: that is not known, or it began at 0."""
    if now[name] is None or not then.get(name):
        return None
    return _signed(100 * (now[name] / then[name] - 1), "%")


def _signed(change: float, unit: str) -> str:
    size = f"{abs(change):,.1f}"
    sign = "" if size == "0.0" else "-" if change < 0 else "+"
    return f"{sign}{size} {unit}"


def tile(
    label: str,
    value: str,
    second: str,
    change: str | None = None,
    colour: Literal["normal", "inverse", "off"] = "normal",
    *,
    line: list[float] | None = None,
) -> None:
    """Draw a tile: a measure of the glossary, its value, what it is of, and how it changed.

    line: its values over the time shown
    """
    is_same = change is not None and change.startswith("0.0 ")
    with st.container(border=True, height="stretch", gap="xsmall"):
        st.metric(
            label,
            theme.markdown_text(value),
            change,
            "off" if is_same else colour,
            help=glossary.hover(label),
            delta_arrow="off" if is_same else "auto",
            chart_data=line or None,
        )
        st.caption(theme.markdown_text(second))

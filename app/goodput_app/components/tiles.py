"""The numbers at the top of a page, each with its denominator and its definition one hover away."""

from __future__ import annotations

from typing import Any, Literal

import streamlit as st

from goodput_app import theme

Row = dict[str, Any]
WIDE_RATIO = 0.05  # threshold('interval_shown_over') is the fleet's


def of_fleet(summary: Row, before: Row | None = None) -> None:
    """Draw the six tiles of the Overview, with what changed since the window before, where known.

    summary, before: rows of marts.goodput_summary.
    """
    then = before or {}
    with st.container(key="tiles"):
        columns = st.columns([1.2, 1.1, 1.2, 1.05, 1.05, 0.65], gap="small")
    value, second = headline(summary)
    with columns[0]:
        _tile(
            "Goodput (of capacity)",
            value,
            second,
            "Kept step time less every loss known inside steps, over capacity. The interval is "
            "what the evidence leaves open. The change is that of kept steps.",
            _points(summary, then, "goodput_ratio"),
        )
    with columns[1]:
        wasted = f"{theme.gpu_time(summary['wasted_ms'])} = {_share(summary, 'wasted_ms')}"
        _tile(
            "Wasted",
            theme.usd(summary["wasted_usd"]),
            wasted,
            "GPU time that is badput, and its cost.",
            _growth(summary, then, "wasted_usd"),
            "inverse",
        )
    with columns[2]:
        cost = theme.usd(summary["capacity_usd"])
        _tile(
            "Capacity",
            theme.gpu_time(summary["capacity_ms"]),
            cost,
            "GPUs in the inventory times the window.",
            _growth(summary, then, "capacity_ms"),
            "off",
        )
    with columns[3]:
        _tile(
            "Allocated (of avail.)",
            theme.percent(summary["allocation_ratio"]),
            f"{theme.gpu_time(summary['held_ms'])} held",
            "Held by jobs, over capacity less what was down or drained. This is not goodput.",
            _points(summary, then, "allocation_ratio"),
            "off",
        )
    with columns[4]:
        _tile(
            "Coverage (of held)",
            theme.percent(summary["coverage_ratio"]),
            f"{theme.gpu_time(summary['unknown_ms'] + summary['busy_ms'])} open",
            "The share of held GPU time that job evidence or telemetry settles.",
            _points(summary, then, "coverage_ratio"),
        )
    with columns[5]:
        _tile(
            "Runs",
            f"{summary['runs']:,}",
            f"on {theme.count(summary['gpus'], 'GPU')}",
            "Runs that held GPUs.",
            _growth(summary, then, "runs"),
            "off",
        )


def of_run(run: Row) -> None:
    """Draw the tiles of a run. run: its row of marts.runs."""
    with st.container(key="tiles"):
        columns = st.columns(5)
    with columns[0]:
        note = "communication not separated" if run["step_unsplit_ms"] else "kept step time"
        _tile(
            "Goodput (of held)",
            goodput_of_held(run),
            note,
            "Kept step time less losses known inside steps, over held. An interval is what the "
            "evidence leaves open.",
        )
    with columns[1]:
        share = (
            theme.percent(run["wasted_ms"] / run["held_ms"]) if run["held_ms"] else theme.NOT_KNOWN
        )
        wasted = f"{theme.gpu_time(run['wasted_ms'])} = {share}"
        _tile("Wasted", theme.usd(run["wasted_usd"]), wasted, "Badput of the run, and its cost.")
    with columns[2]:
        _tile(
            "Held",
            theme.gpu_time(run["held_ms"]),
            f"{theme.usd(run['usd'])}, {theme.count(run['gpus'], 'GPU')}",
            "GPU time that the scheduler gave to the run.",
        )
    with columns[3]:
        _tile(
            "ETTR (of wall clock)",
            theme.percent(run["ettr_ratio"]),
            "whole run, queue included",
            "Kept step time over last end less first eligible, whatever the window.",
        )
    with columns[4]:
        runs = (
            f"{theme.count(run['attempts'], 'attempt')}, {theme.count(run['job_runs'], 'job run')}"
        )
        _tile("Restarts", f"{run['restarts']:,}", runs, "Attempts after the first.")


def is_open(run: Row) -> bool:
    """Say whether the bounds of a run's goodput are too far apart for one number."""
    lo, hi = run["runtime_lo_ratio"], run["runtime_hi_ratio"]
    return lo is not None and hi is not None and hi - lo > WIDE_RATIO


def goodput_of_held(run: Row) -> str:
    """Return a run's goodput, an interval where it is not settled. run: a row of marts.runs."""
    lo = run["goodput_of_held_ratio"]
    if lo is None or run["unsettled_ms"] >= run["held_ms"]:
        return theme.NOT_KNOWN
    if not is_open(run):
        return theme.percent(lo)
    return f"{lo * 100:.1f} - {theme.percent(lo + run['unsettled_ms'] / run['held_ms'])}"


def headline(summary: Row) -> tuple[str, str]:
    """Return goodput as it is to be shown, and what is said beside it.

    Where its bounds are far apart the interval is shown, and the headline value beside it.
    """
    value = theme.percent(summary["goodput_ratio"])
    lo, hi = summary["goodput_lo_ratio"], summary["goodput_hi_ratio"]
    bounds = f"{lo * 100:.1f} - {theme.percent(hi)}" if lo is not None else theme.NOT_KNOWN
    unsplit = "communication not separated" if summary["step_unsplit_ms"] else ""
    if summary["is_interval_wide"]:
        return bounds, f"{value} kept steps; {unsplit}" if unsplit else f"{value} kept steps"
    return value, f"{bounds}; {unsplit}" if unsplit else f"bounds {bounds}"


def _share(summary: Row, name: str) -> str:
    return theme.percent(summary[name] / summary["capacity_ms"] if summary["capacity_ms"] else None)


def _points(now: Row, then: Row, name: str) -> str | None:
    """Return by how many percentage points a ratio changed; None: that is not known."""
    if now[name] is None or then.get(name) is None:
        return None
    return _signed(100 * (now[name] - then[name]), "pts")


def _growth(now: Row, then: Row, name: str) -> str | None:
    """Return by how many percent an amount changed; None: that is not known, or it began at 0."""
    if now[name] is None or not then.get(name):
        return None
    return _signed(100 * (now[name] / then[name] - 1), "%")


def _signed(change: float, unit: str) -> str:
    size = f"{abs(change):,.1f}"
    sign = "" if size == "0.0" else "-" if change < 0 else "+"
    return f"{sign}{size} {unit}"


def _tile(
    label: str,
    value: str,
    second: str,
    meaning: str,
    change: str | None = None,
    colour: Literal["normal", "inverse", "off"] = "normal",
) -> None:
    is_same = change is not None and change.startswith("0.0 ")
    with st.container(border=True, height="stretch", gap="xsmall"):
        st.metric(
            label,
            theme.markdown_text(value),
            change,
            "off" if is_same else colour,
            help=meaning,
            delta_arrow="off" if is_same else "auto",
        )
        st.caption(theme.markdown_text(second))

"""The numbers at the top of a page, each with its denominator and its definition one hover away."""

from __future__ import annotations

from typing import Any, Literal

import streamlit as st

from goodput_app.dashboard import headline, theme

Row = dict[str, Any]
MEANINGS = {
    "goodput": "Useful training time: retained step time less the throttling and straggler waits "
    "measured inside steps. Communication is useful.",
    "active_while_allocated": "The share of allocated GPU time with activity, as far as readings "
    "cover it. Goodput needs the steps of jobs that hold half of the allocated time.",
    "gpu_activity": "The share of GPU time with activity, as far as readings cover it. It does not "
    "say who had the GPUs.",
}


def of_fleet(
    summary: Row, first: headline.Headline, before: Row | None, change: str | None
) -> None:
    """Draw the six tiles of the Overview, with what changed since the window before, where known.

    summary, before: rows of marts.goodput_summary. change: of the first tile.
    """
    then = before or {}
    with st.container(key="tiles"):
        columns = st.columns([1.2, 1.1, 1.2, 1.05, 1.05, 0.65], gap="small")
    with columns[0]:
        _tile(
            first.label,
            first.text,
            "; ".join([*([first.bound] if first.bound else []), *first.notes]),
            f"{MEANINGS[first.rung]} Definition {summary['definition_version']}.",
            change,
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
        value, bound = headline.of_run(run)
        missing = headline.NOT_IN_STEPS if run["step_unsplit_ms"] else ""
        _tile(
            "Goodput (% of allocated)",
            value,
            "; ".join(filter(None, (bound, missing))) or "all time is classified",
            "Useful training time: retained step time less the throttling and straggler waits "
            "measured inside steps. The upper bound counts all unclassified time as useful.",
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


def _share(summary: Row, name: str) -> str:
    return theme.percent(summary[name] / summary["capacity_ms"] if summary["capacity_ms"] else None)


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

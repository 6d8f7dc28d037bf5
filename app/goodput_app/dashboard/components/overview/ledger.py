"""Goodput and what was wasted, with their change, and where the rest of the capacity went."""

import itertools
from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import scope_bar, tables
from goodput_app.dashboard.figures import bars
from goodput_app.dashboard.figures.bars import text_of
from goodput_app.text import glossary, headline, units
from goodput_app.weekly.like_for_like import Compared
from goodput_app.weekly.words import wasted_change

HEALTH_PAGE, RUNS_PAGE = "pages/node_health.py", "pages/all_runs.py"
WASTE_PAGE = "pages/idle_gaps.py"
PAGES = {"useful": RUNS_PAGE, "not_available": HEALTH_PAGE}  # of a group; all others: Waste
CATEGORIES = {
    "label": "Category",
    "share_ratio": "Share of capacity",
    "gpu_ms": "GPU time",
    "gpu_hi_ms": "At most",
    "cost": "Cost",
    "definition": "Definition",
}


def draw(
    summary: Mapping[str, Any],
    first: headline.Headline,
    groups: pl.DataFrame,
    compared: Compared | None,
) -> None:
    """Draw the headline and the ledger as one bar with its groups.

    summary: a row of marts.goodput_summary; groups: `ledger_groups.grouped`
    """
    with st.container(border=True, gap="xsmall"):
        st.html(_headline(summary, first, compared))
        parts = [
            bars.Part(row["label"], row["gpu_ms"], row["colour"], _hover(row))
            for row in groups.iter_rows(named=True)
        ]
        st.html(bars.stacked(parts, "Ledger, shares of the capacity"))
        moved = {} if compared is None else _points(compared.now, compared.then)
        with st.container(key="groups"):
            columns = st.columns(groups.height, gap="small")
        capacity = int(groups["gpu_ms"].sum())
        for column, row in zip(columns, groups.iter_rows(named=True), strict=True):
            with column, st.container(gap=None):
                _group(row, capacity, moved.get(row["category"]))
        st.caption(_caption(summary, first, groups))


def categories(frame: pl.DataFrame) -> None:
    """Draw the table of all categories that have time. frame: marts.ledger_by_category."""
    used = frame.filter(pl.col("gpu_ms") > 0).sort("gpu_ms", descending=True)
    tables.show(used, CATEGORIES, "categories", rows=used.height)


def _headline(
    summary: Mapping[str, Any],
    first: headline.Headline,
    compared: Compared | None,
) -> str:
    capacity = f"of {units.gpu_time(summary['capacity_ms'])}"
    bound = text_of("; ".join(filter(None, (capacity, first.bound))))
    of = units.cost(summary["capacity_cost"])
    amounts = (summary["wasted_cost"], summary["capacity_cost"])
    share = summary["wasted_ms"] / summary["capacity_ms"] if summary["capacity_ms"] else None
    wasted = f"{units.gpu_time(summary['wasted_ms'])} = {units.percent(share)}"
    meaning = text_of(glossary.hover(first.label) or "")
    change, grown = _changes(compared, is_goodput=first.rung == "goodput")
    return (
        f'<div class="gp-head"><div class="gp-big" title="{meaning}">{text_of(first.text)}</div>'
        f"<div><b>{text_of(first.label)}</b><br><small>{bound}</small></div>"
        f"<div>{change}</div>"
        f'<div class="gp-right"><span class="gp-wasted">'
        f"{text_of(units.cost(summary['wasted_cost'], beside=amounts))}</span> wasted "
        f"of {text_of(of)}<br><small>{text_of(wasted)}</small> {grown}</div></div>"
    )


def _changes(compared: Compared | None, *, is_goodput: bool) -> tuple[str, str]:
    """Return the change of goodput and of the wasted cost, as HTML."""
    if compared is None:
        return "<small>No earlier window is compared</small>", ""
    windows, change = compared.windows, compared.change
    grown = ""
    if text := wasted_change(compared):
        grown = f'<span class="gp-pill">{text_of(text)}</span>'
    if change is None or not is_goodput:
        return f"<small>Compared with {text_of(windows.name)}</small>", grown
    text = f"{_arrow(change.ratio)}{units.points(change.ratio).lstrip('+')} points"
    if not change.is_certain:
        text += ", direction not certain"
    said = ""
    if change.classified is not None:
        said = f"{units.points(change.classified)} points within the time that evidence classifies"
    second = f"against {windows.name}, like for like"
    return (
        f'<span class="gp-pill" title="{said}">{text_of(text)}</span>'
        f"<br><small>{text_of(second)}</small>",
        grown,
    )


def _points(now: pl.DataFrame, then: pl.DataFrame) -> dict[str, float]:
    """Return by how many points the share of each group moved."""
    left, right = (
        {row["category"]: row["gpu_ms"] / total for row in side.iter_rows(named=True)}
        if (total := side["gpu_ms"].sum())
        else {}
        for side in (now, then)
    )
    return {name: share - right[name] for name, share in left.items() if name in right}


def _group(row: Mapping[str, Any], capacity_ms: int, moved: float | None) -> None:
    page = PAGES.get(row["category"], WASTE_PAGE)
    params = scope_bar.carried()
    if page == WASTE_PAGE:
        params |= {"category": row["largest"]}
    st.page_link(page, label=row["label"], query_params=params, help=_hover(row))
    share = row["gpu_ms"] / capacity_ms if capacity_ms else None
    change = "" if moved is None else f" <small>{units.points(moved)}</small>"
    st.html(
        f'<div class="gp-group">{bars.key(row["colour"])} <b>{units.percent(share)}</b>{change}<br>'
        f"{units.gpu_time(row['gpu_ms'])}<br>{text_of(units.cost(row['cost']))}</div>"
    )


def _caption(summary: Mapping[str, Any], first: headline.Headline, groups: pl.DataFrame) -> str:
    notes = "; ".join(first.notes)
    said = f"{notes[:1].upper()}{notes[1:]}." if notes else ""
    cost = summary["capacity_cost"]
    point = theme.markdown_text(f"One point costs {units.cost(cost / 100)}.") if cost else ""
    return " ".join(filter(None, (_wasted(groups), point, said)))


def _wasted(groups: pl.DataFrame) -> str:
    """Return which groups are wasted, so that a reader can add them up."""
    is_lost = (groups["wasted_ms"] > 0).to_list()
    rows = [
        [label for label, _ in row]
        for lost, row in itertools.groupby(
            zip(groups["label"], is_lost, strict=True), lambda x: x[1]
        )
        if lost
    ]
    if not rows:
        return ""
    said = " and ".join(row[0] if len(row) == 1 else f"{row[0]} to {row[-1]}" for row in rows)
    lost_of = groups.filter(pl.col("wasted_ms") > 0)
    kept_ms = int((lost_of["gpu_ms"] - lost_of["wasted_ms"]).sum())
    less = f", less {units.gpu_time(kept_ms)} of declared or unknown time" if kept_ms else ""
    return f"Wasted: {said}{less}."


def _hover(row: Mapping[str, Any]) -> str:
    amount = f"{units.gpu_time(row['gpu_ms'])}, {units.cost(row['cost'])}"
    return f"{row['label']}: {amount}" + (f" ({row['definition']})" if row["definition"] else "")


def _arrow(change: float) -> str:
    return "" if abs(change) < units.POINT else "▲ " if change > 0 else "▼ "

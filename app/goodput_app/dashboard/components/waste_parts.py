"""Parts of the Waste page: the chosen category, where its time is, and the idle gaps inside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import places
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import marts

if TYPE_CHECKING:
    from goodput_queries.scope import Scope

BLAMES = {"own": ", team-caused", "platform": ", infrastructure-caused"}
INTERVALS = {
    "start_at": "Start",
    "interval_s": "Length",
    "node": "Node",
    "gpu_index": "GPU",
    "phase": "Detail",
    "run_id": "Run",
    "team": "Team",
    "gpu_ms": "GPU time",
    "cost": "Cost",
}


def categories(scope: Scope) -> dict[str, str]:
    """Return the categories that have time in the scope, with their labels."""
    ledger = marts.ledger_by_category(scope).filter(pl.col("gpu_ms") > 0).sort("label")
    return dict(ledger.select("category", "label").iter_rows())


def chosen_category(scope: Scope) -> str | None:
    """Return the category that the URL asks for; one that does not exist is named and ignored."""
    wanted = st.query_params.get("category")
    if not wanted:
        return None
    if wanted in set(marts.ledger_by_category(scope)["category"]):
        return wanted
    st.warning(
        f"'{theme.markdown_text(wanted)}' is not a category; all categories are shown.",
        icon=":material/filter_alt_off:",
    )
    return None


def intervals(scope: Scope, category: str) -> None:
    """Draw where the time of a category is: its sum in the scope, and the intervals behind it."""
    blame = st.query_params.get("blame") or None
    with panel(
        "Where the time is",
        "marts.category_intervals",
        help="Intervals of single GPUs in this category; they add up to the ledger.",
    ):
        found = marts.category_intervals(scope, category, blame)
        if found.is_empty():
            st.caption("No time in this category with these filters.")
            return
        first = found.row(0, named=True)
        of = first["label"] + BLAMES.get(blame or "", "")
        cost = theme.cost(first["all_cost"]).replace("$", r"\$")
        st.markdown(f"**{of}: {theme.gpu_time(first['all_gpu_ms'])}, {cost}**")
        number = theme.count(first["all_intervals"], "interval")
        if found.height < first["all_intervals"]:
            number += f"; the table has the {found.height:,} with the highest cost"
        st.caption(f"{number}.")
        of = ("gpu_uuid", "gpu_instance", "start_at")
        places.pick(found, INTERVALS, "interval", of, rows=8)


def gaps_of(found: marts.IdleGaps, category: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return gaps and sums as the page shows them: whole gaps, or their parts in one category."""
    if category is not None:
        of_it = pl.col("category") == category
        return found.costliest.filter(of_it), found.sums.filter(of_it)
    whole = found.costliest.filter("is_main").with_columns(
        start_at="gap_start_at", end_at="gap_end_at", gpu_ms="gap_gpu_ms", cost="gap_cost"
    )
    whole = whole.sort("cost", "gpu_ms", descending=True, nulls_last=True, maintain_order=True)
    return whole, found.sums.with_columns(gaps="main_gaps")


def gap_count(shown: int, number: int, gpu_ms: int, category: str | None) -> None:
    """Say how many idle gaps there are and how much time they have, in the chosen category."""
    inside = " of this category" if category else ""
    text = f"{theme.count(number, 'idle gap')}, {theme.gpu_time(gpu_ms)}{inside} in them"
    if shown < number:
        text += f"; the table has the {shown:,} with the highest cost, `goodput gaps` all"
    st.caption(f"{text}.")

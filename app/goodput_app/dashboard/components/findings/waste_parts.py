"""Parts of the Waste page: the chosen category, where its time is, and the idle gaps inside it."""

from collections.abc import Sequence

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import places, tables, time_picker
from goodput_app.dashboard.components.findings import teams
from goodput_app.dashboard.components.rows import changes
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import anomalies, ledger_groups, marts
from goodput_app.dashboard.table_columns import Columns, headers
from goodput_app.text import units
from goodput_queries.scope import Scope

BLAMES = {
    "own": ", team-caused", "platform": ", infrastructure-caused", "unsettled": ", cause unknown"
}  # fmt: skip


def categories(scope: Scope) -> dict[str, str]:
    """Return the categories that have time in the scope, with their labels."""
    ledger = marts.ledger_by_category(scope).filter(pl.col("gpu_ms") > 0).sort("label")
    return dict(ledger.select("category", "label").iter_rows())


def changed(scope: Scope) -> None:
    """Draw what each category and team wasted and its change, where a reader chose a baseline."""
    if not time_picker.baseline().is_chosen:
        return
    with panel("Waste by category", "marts.ledger_by_category"):
        of_it = (pl.col("kind") == "badput") & (pl.col("gpu_ms") > 0)
        lost = marts.ledger_by_category(scope).filter(of_it).sort("gpu_ms", descending=True)
        names = headers("waste.categories")
        lost, names = changes.of_waste(lost, names, scope, ledger_groups.OF_CATEGORY)
        tables.show(lost, names, "waste-by-category", rows=8)
    with panel("Teams by waste", "marts.waste_by_team"):
        teams.draw(ledger_groups.waste(scope), ledger_groups.executing_idle(scope), scope)


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


def in_ledger(scope: Scope, category: str) -> int:
    """Return the GPU-milliseconds that the ledger has of a category."""
    ledger = marts.ledger_by_category(scope).filter(pl.col("category") == category)
    return int(ledger["gpu_ms"].sum())


def intervals(scope: Scope, category: str) -> None:
    """Draw where the time of a category is: its sum in the scope, and the intervals behind it."""
    blame = st.query_params.get("blame") or None
    with panel(
        "Where the time is",
        "marts.category_intervals",
        help="Intervals of single GPUs in this category; they add up to the ledger. "
        "Of a stretch of steps one row has the GPU time of the category in it.",
    ):
        found = marts.category_intervals(scope, category, blame)
        if found.is_empty():
            st.caption("No time in this category with these filters.")
            return
        first = found.row(0, named=True)
        of = first["label"] + BLAMES.get(blame or "", "")
        cost = units.cost(first["all_cost"]).replace("$", r"\$")
        st.markdown(f"**{of}: {units.gpu_time(first['all_gpu_ms'])}, {cost}**")
        number = units.count(first["all_intervals"], "interval")
        if found.height < first["all_intervals"]:
            number += f"; the table has the {found.height:,} with the highest cost"
        st.caption(f"{number}.")
        of = ("gpu_uuid", "gpu_instance", "start_at")
        places.pick(found, headers("waste.intervals"), "interval", of, rows=8)


def waiting_jobs(scope: Scope) -> None:
    """Draw the jobs that waited while GPUs that they could have used were free."""
    with panel(
        "Jobs that waited",
        "marts.waiting_jobs",
        help="Jobs that could have used the free GPUs. Free GPU time counts for each of them.",
    ):
        found = marts.waiting_jobs(scope)
        if found.is_empty():
            st.caption("No waiting job of this scope could have used free GPUs.")
            return
        text = units.count(found["all_jobs"][0], "job")
        if found.height < found["all_jobs"][0]:
            text += f"; the table has the {found.height:,} that asked for most GPU time"
        st.caption(f"{text}.")
        tables.show(found, headers("waste.waiting"), "waiting", rows=8)


def gaps_of(found: marts.IdleGaps, category: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return gaps and sums as the page shows them: whole gaps, or their parts in one category."""
    if category is not None:
        of_it = pl.col("category") == category
        return found.top_gaps.filter(of_it), found.sums.filter(of_it)
    whole = found.top_gaps.filter("is_main").with_columns(
        start_at="gap_start_at", end_at="gap_end_at", gpu_ms="gap_gpu_ms", cost="gap_cost"
    )
    whole = whole.sort("cost", "gpu_ms", descending=True, nulls_last=True, maintain_order=True)
    return whole, found.sums.with_columns(gaps="main_gaps")


def gap_count(shown: int, number: int, gpu_ms: int, ledger_ms: int | None) -> None:
    """Say how many idle gaps there are and how much time they have.

    ledger_ms: what the ledger has of the chosen category; None: no category is chosen.
    """
    text = f"{units.count(number, 'idle gap')}, {units.gpu_time(gpu_ms)}"
    if ledger_ms is None:
        text += " in them"
    else:
        text += (
            f" of this category in them, of {units.gpu_time(ledger_ms)} in the ledger: the rest "
            "has no readings, or is shorter than 1 s"
        )
    if shown < number:
        text += f"; the table has the {shown:,} with the highest cost, `goodput gaps` lists all"
    st.caption(f"{text}.")


def periodic_gaps(scope: Scope) -> None:
    """Draw the gaps that repeat regularly, and the evidence of the picked one."""
    with panel(
        "Periodic gaps",
        "marts.periodic_gaps",
        help="Gaps and declared pauses of one job at a regular interval; telemetry is enough.",
    ):
        found = anomalies.periodic_gaps(scope)
        if found.is_empty():
            st.caption("No job loses 5 % or more to gaps at a regular interval in this scope.")
            return
        _with_evidence(found, headers("waste.periodic"), "periodic", ("job_run_key", "coincides"))


def gang_gaps(scope: Scope, least_s: float) -> None:
    """Draw the gaps of whole gangs, one row each, and the evidence of the picked one."""
    with panel(
        "Gaps of jobs",
        "marts.gang_gaps",
        help="Most of the GPUs of one job were idle together: one row for all of them.",
    ):
        found = anomalies.gang_gaps(scope, least_s)
        if found.is_empty():
            st.caption("No job had most of its GPUs idle together in this scope.")
            return
        first = found.row(0, named=True)
        text = f"{units.count(first['all_gaps'], 'gap')}, {units.gpu_time(first['all_gpu_ms'])}"
        if found.height < first["all_gaps"]:
            text += f"; the table has the {found.height:,} with the highest cost"
        st.caption(f"{text}.")
        _with_evidence(found, headers("waste.gangs"), "gang", ("job_run_key", "start_at"))


def _with_evidence(found: pl.DataFrame, names: Columns, key: str, of: Sequence[str]) -> None:
    picked = tables.pick(found, names, key, places.ids(found, of), rows=8)
    if picked is None:
        st.caption("Select a row for its evidence and links to its run and node.")
        return
    st.markdown(f"**Evidence:** {theme.markdown_text(picked['evidence'])}")
    places.facts(picked, names.details)
    places.links(picked)

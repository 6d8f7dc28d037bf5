"""Search on every page: a button, or the keys / and S, lead to a run, a node, a GPU or a team."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import streamlit as st

from goodput_app.access import rows
from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.data import search
from goodput_queries.scope import EVERYTHING, Scope

TEXT_MAX_CHARS = 200
LABEL_MAX_CHARS = 60
OVERVIEW_PAGE = "pages/fleet_overview.py"
ICONS = {"run": "monitoring", "node": "dns", "gpu": "memory", "team": "groups"}


def button() -> None:
    """Draw the button that opens the search."""
    if st.button(
        "Search",
        icon=":material/search:",
        shortcut="S",
        width="stretch",
        key="open_search",  # `server/index_page.py` presses it at the key /
        help="Runs by name, job id or user; nodes; GPUs; teams.",
    ):
        _dialog(rows.limited(EVERYTHING))


@st.dialog("Search", icon=":material/search:")
def _dialog(scope: Scope) -> None:
    text = st.text_input(
        "Name, job id or UUID",
        key="search_text",
        live=True,  # results while typing
        max_chars=TEXT_MAX_CHARS,
        placeholder="node-07, 1042, GPU-3f2a...",
    )
    if not text.strip():
        st.caption("Several words must all occur.")
        return
    found = search.find(text, scope)
    if found.is_empty():
        st.info("No match.", icon=":material/search_off:")
        return
    for row in found.iter_rows(named=True):
        _link(row)
    if (total := found["total"][0]) > found.height:
        st.caption(f"{found.height} of {total:,}: add a word to narrow the search.")


def _link(row: Mapping[str, Any]) -> None:
    """Draw the link to what a row of marts.search_targets names, with its other names."""
    name = theme.markdown_text(row["label"], LABEL_MAX_CHARS)
    detail = theme.markdown_text(row["detail"] or "", LABEL_MAX_CHARS)
    label = f"{name} :gray[{detail}]" if detail else name
    page, params = target(row)
    icon = f":material/{ICONS[row['kind']]}:"
    st.page_link(page, label=label, icon=icon, query_params=params, width="stretch")


def target(row: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the page and the query parameters of a row of marts.search_targets.

    A run is shown in its own time, everything else in the time range of the page.
    """
    kind, value = row["kind"], row["value"]
    everywhere = {"team": None, "node": None, "run": None, "cluster": row["cluster"]}
    if kind == "run":
        start = search.hour_of(row["start_at"])
        window = {"from": time_zone.iso(start), "to": _end(row["end_at"])}
        return name_links.RUN_PAGE, scope_bar.carried(**{**everywhere, **window, "run": value})
    if kind == "node":
        return name_links.NODE_PAGE, scope_bar.carried(**{**everywhere, "node": value})
    if kind == "gpu":
        return name_links.GPU_PAGE, {
            **scope_bar.carried(**{**everywhere, "cluster": None}),
            "gpu": value,
        }
    return OVERVIEW_PAGE, scope_bar.carried(**{**everywhere, "team": value})


def link_to_time_of(run_key: str) -> None:
    """Draw a link to a run in its own time, which the time range of the page may not have."""
    for row in search.run(run_key).iter_rows(named=True):
        page, params = target(row)
        since = f"from {time_zone.moment(row['start_at'])}"
        label = f"Show the run in its own time ({since})"
        st.page_link(page, label=label, icon=":material/schedule:", query_params=params)


def _end(at: datetime | None) -> str:
    return "now" if at is None else time_zone.iso(at)

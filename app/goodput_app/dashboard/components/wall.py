"""The view for a screen on the wall: no side bar, no filters, larger, and always refreshed."""

from __future__ import annotations

import streamlit as st

PARAM, ON = "view", "wall"
FONT_PX = 16  # of charts
LOOK = """<style>
[data-testid="stSidebar"], [data-testid="stHeader"], [data-testid="stSidebarCollapsedControl"],
[data-testid="stExpandSidebarButton"], [data-testid="stExpander"], [data-testid="stDownloadButton"]
  { display: none; }
html { font-size: 20px; }
[data-testid="stMainBlockContainer"] { padding: 1rem 1.5rem; }
</style>"""


def is_on() -> bool:
    """Say whether the link asks for this view."""
    return st.query_params.get(PARAM) == ON


def scaled(px: int) -> int:
    """Return a length that goes with the type of the page."""
    return px * 4 // 3 if is_on() else px


def enter(page: st.Page) -> None:
    """Draw the link to this view of a page."""
    params = {**st.query_params.to_dict(), PARAM: ON}
    _link(page, "Wall view", "fullscreen", params)


def leave(page: st.Page) -> None:
    """Draw the link back."""
    params = {name: value for name, value in st.query_params.to_dict().items() if name != PARAM}
    _link(page, "Leave wall view", "fullscreen_exit", params)


def _link(page: st.Page, label: str, icon: str, params: dict[str, str]) -> None:
    st.page_link(page, label=label, icon=f":material/{icon}:", query_params=params)

"""The view for a screen on the wall: no side bar, no filters, larger, and always refreshed."""

from collections.abc import Callable

import streamlit as st

Go = Callable[[dict[str, str | None]], None]  # changes the link

PARAM, ON = "view", "wall"
FONT_PX = 16  # of charts


def is_on() -> bool:
    """Say whether the link asks for this view."""
    return st.query_params.get(PARAM) == ON


def scaled(px: int) -> int:
    """Return a length that goes with the type of the page."""
    return px * 4 // 3 if is_on() else px


def enter(go: Go) -> None:
    """Draw the button that opens this view; it is in the link then."""
    _button("Wall view", "fullscreen", go, ON)


def leave(go: Go) -> None:
    """Draw the button back."""
    _button("Leave wall view", "fullscreen_exit", go, None)


def _button(label: str, icon: str, go: Go, value: str | None) -> None:
    st.button(
        label,
        key="wall",
        icon=f":material/{icon}:",
        type="tertiary",
        on_click=go,
        args=({PARAM: value},),
    )

"""A page that is drawn again once a part of it is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from collections.abc import Callable

AWAITING = "awaiting_"  # prefix of the key of an element that a page has until it is redrawn
LOOK_EVERY_S = 1


def draw_again_when(name: str, is_ready: Callable[[], bool]) -> None:
    """Draw the page again once a part is ready.

    Until then the page has an element that is not shown, so that a program that drives the page
    can tell that it is about to be redrawn. name: of the part, one of each on a page
    """
    st.container(key=f"{AWAITING}{name}", height=1, border=False)

    def look() -> None:
        if is_ready():
            st.rerun()

    st.fragment(look, run_every=LOOK_EVERY_S)()

"""Rows as cards one below the other, for screens on which their table has no room.

The server does not know how wide a screen is: both are drawn, and the style sheet of `main.py`
hides one of them by the names of their containers.
"""

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import scope_bar

CARDS_SHOWN = 12
TEXT_MAX_CHARS = 300


def table_of(key: str) -> DeltaGenerator:
    """Return the container of a table that narrow screens do not show."""
    return st.container(key=f"table_of_{key}")


def draw(
    frame: pl.DataFrame, key: str, ids: pl.Series, card: Callable[[Mapping[str, Any]], None]
) -> None:
    """Draw the first rows; a button opens one like a click on its row of the table.

    key: of the table, and the query parameter that names its picked row by `ids`
    """
    with st.container(key=f"cards_of_{key}"):
        rows = frame.head(CARDS_SHOWN).iter_rows(named=True)
        for number, (row, value) in enumerate(zip(rows, ids.to_list(), strict=False)):
            with st.container(border=True, gap="small"):
                card(row)
                st.button(
                    "Open",
                    key=f"card_{key}_{number}",
                    icon=":material/arrow_forward:",
                    on_click=scope_bar.go,
                    args=({key: value},),
                )
        if frame.height > CARDS_SHOWN:
            st.caption(f"The first {CARDS_SHOWN} of {frame.height:,}; a wider screen has all.")


def text(value: str) -> str:
    """Return text from the data as a card shows it."""
    return theme.markdown_text(value, TEXT_MAX_CHARS)

"""Rows as cards one below the other, for screens on which their table has no room.

The server does not know how wide a screen is: both are drawn, and the style sheet of `main.py`
hides one of them by the names of their containers.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import scope_bar

CARDS_SHOWN = 12
TEXT_MAX_CHARS = 300

Place = Literal["table", "cards"]


def table_of(key: str) -> DeltaGenerator:
    """Return the container of a table that narrow screens do not show."""
    return st.container(key=f"table_of_{key}")


def choose(key: str, value: str | None, place: Place) -> None:
    """Put a row that a person chose in the link. place: where on the page it was chosen."""
    scope_bar.go({key: value})
    st.session_state[f"chosen_{key}"] = place, value


def place(key: str) -> Place | None:
    """Return where on the page the row of the link was chosen; None: another page led to it.

    Streamlit forgets the table's state when its page is left: what was chosen before is no choice
    of this visit.
    """
    if f"pick_{key}" not in st.session_state:
        st.session_state.pop(f"chosen_{key}", None)
    where, value = st.session_state.get(f"chosen_{key}", (None, None))
    return where if value is not None and value == st.query_params.get(key) else None


def draw(
    frame: pl.DataFrame,
    key: str,
    ids: pl.Series,
    card: Callable[[Mapping[str, Any]], None],
    opened: Callable[[Mapping[str, Any]], None] | None = None,
) -> None:
    """Draw the first rows; a button opens one like a click on its row of the table, one adds more.

    key: of the table, and the query parameter that names its picked row by `ids`
    opened: draws the row that was chosen here, in the place of its card
    """
    chosen = st.query_params.get(key) if place(key) == "cards" else None
    most = st.session_state.get(f"cards_shown_{key}", CARDS_SHOWN)
    with st.container(key=f"cards_of_{key}"):
        rows = frame.head(most).iter_rows(named=True)
        for number, (row, value) in enumerate(zip(rows, ids.to_list(), strict=False)):
            if opened is not None and value == chosen:
                opened(row)
                continue
            with st.container(border=True, gap="small"):
                card(row)
                st.button(
                    "Open",
                    key=f"card_{key}_{number}",
                    icon=":material/arrow_forward:",
                    on_click=choose,
                    args=(key, value, "cards"),
                )
        if frame.height > most:
            st.caption(f"The first {most:,} of {frame.height:,}.")
            st.button("Show more", key=f"more_{key}", on_click=_more, args=(key, most))


def _more(key: str, most: int) -> None:
    st.session_state[f"cards_shown_{key}"] = most + CARDS_SHOWN


def text(value: str) -> str:
    """Return text from the data as a card shows it."""
    return theme.markdown_text(value, TEXT_MAX_CHARS)

"""Findings and fixes one below the other, for screens on which a table has no room.

The server does not know how wide a screen is: both are drawn, and the style sheet of `main.py`
hides one of them by the names of their containers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import scope_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl
    from streamlit.delta_generator import DeltaGenerator

CARDS_SHOWN = 12
TEXT_MAX_CHARS = 300
SEVERITY_COLOURS: dict[str, theme.Badge] = {"critical": "red", "warning": "orange", "info": "gray"}


def table_of(key: str) -> DeltaGenerator:
    """Return the container of a table that narrow screens do not show."""
    return st.container(key=f"table_of_{key}")


def fixes(frame: pl.DataFrame, ids: pl.Series) -> None:
    """Draw what to do as cards. frame: marts.fixes."""
    _cards(frame, "fix", ids, _fix)


def findings(frame: pl.DataFrame, ids: pl.Series) -> None:
    """Draw findings as cards. frame: marts.findings."""
    _cards(frame, "finding", ids, _finding)


def _cards(
    frame: pl.DataFrame, key: str, ids: pl.Series, draw: Callable[[Mapping[str, Any]], None]
) -> None:
    with st.container(key=f"cards_of_{key}"):
        rows = frame.head(CARDS_SHOWN).iter_rows(named=True)
        for number, (row, value) in enumerate(zip(rows, ids.to_list(), strict=False)):
            with st.container(border=True, gap="small"):
                draw(row)
                st.button(
                    "Open",
                    key=f"card_{key}_{number}",
                    icon=":material/arrow_forward:",
                    on_click=scope_bar.go,
                    args=({key: value},),
                )
        if frame.height > CARDS_SHOWN:
            st.caption(f"The first {CARDS_SHOWN} of {frame.height:,}; a wider screen has all.")


def _fix(row: Mapping[str, Any]) -> None:
    st.markdown(f"**{_text(row['what_to_do'])}**")
    lines = [f"At {_text(row['target'])}", f"{theme.gpu_time(row['back_ms'])} recoverable"]
    if row["back_week_cost"] is not None:
        cost = theme.cost(row["back_week_cost"]).replace("$", r"\$")
        lines.append(f"{cost} a week")
    st.markdown("; ".join(lines))
    found = f"{row['findings']:,} finding{'' if row['findings'] == 1 else 's'}"
    st.caption(f"{found}; {_text(row['owner'])}, {_text(row['effort'])}")


def _finding(row: Mapping[str, Any]) -> None:
    with st.container(horizontal=True, gap="small"):
        st.badge(row["severity"], color=SEVERITY_COLOURS[row["severity"]])
        st.badge(row["state"], color="gray")
    st.markdown(f"**{_text(row['title'])}**: {_text(row['subject'] or 'the fleet')}")
    st.markdown(_text(row["evidence"]))
    st.markdown(f"What to do: {_text(row['what_to_do'])}")
    since = f"{row['confidence']}, since {theme.moment(row['since_at'])}"
    if row["gpu_ms"] is not None:
        since += f"; {theme.gpu_time(row['gpu_ms'])}"
    st.caption(since)


def _text(value: str) -> str:
    return theme.markdown_text(value, TEXT_MAX_CHARS)

"""Findings and fixes as cards, for narrow screens."""

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import severities, time_zone
from goodput_app.dashboard.components.rows import cards
from goodput_app.dashboard.components.rows.cards import text
from goodput_app.text import confidence, units


def fixes(frame: pl.DataFrame, ids: pl.Series) -> None:
    """Draw what to do as cards. frame: marts.fixes."""
    cards.draw(frame, "fix", ids, _fix)


def findings(
    frame: pl.DataFrame, ids: pl.Series, opened: Callable[[Mapping[str, Any]], None]
) -> None:
    """Draw findings as cards. frame: marts.findings; opened: `cards.draw`."""
    cards.draw(frame, "finding", ids, _finding, opened)


def _fix(row: Mapping[str, Any]) -> None:
    st.markdown(f"**{text(row['what_to_do'])}**")
    lines = [f"At {text(row['target'])}", f"{units.gpu_time(row['back_ms'])} recoverable"]
    if row["back_cost"] is not None:
        lines.append(units.cost(row["back_cost"]).replace("$", r"\$"))
    st.markdown("; ".join(lines))
    found = f"{row['findings']:,} finding{'' if row['findings'] == 1 else 's'}"
    st.caption(f"{found}; {text(row['owner'])}, {text(row['effort'])}")


def _finding(row: Mapping[str, Any]) -> None:
    with st.container(horizontal=True, gap="small"):
        severities.badge(row["severity"])
        st.badge(row["state"], color="gray")
    st.markdown(f"**{text(row['title'])}**: {text(row['subject'] or 'the fleet')}")
    st.markdown(text(row["evidence"]))
    st.markdown(f"What to do: {text(row['what_to_do'])}")
    since = f"{confidence.with_hit_rate(row)}. Since {time_zone.moment(row['since_at'])}"
    if row["gpu_ms"] is not None:
        since += f"; {units.gpu_time(row['gpu_ms'])}"
    if row["cost"] is not None:
        since += f", {units.cost(row['cost'])}".replace("$", r"\$")
    st.caption(since)

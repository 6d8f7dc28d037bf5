"""The columns of a row that its table leaves out, as lines of text."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import streamlit as st

from goodput_app.dashboard import theme

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UNITS = {"_w": (1, "W"), "_hz": (1_000_000, "MHz"), "_c": (1, "°C")}


def draw(row: Mapping[str, Any], names: Mapping[str, str], columns: Iterable[str]) -> None:
    """Draw these columns of a row where they say something.

    names: column -> header
    """
    lines = [f"**{names[name]}:** {theme.markdown_text(text(name, row[name]))}"
             for name in columns if row[name] not in (None, "")]  # fmt: skip
    if lines:
        st.markdown("  \n".join(lines))


def text(name: str, value: Any) -> str:
    """Return a value as people read it; the suffix of its column says the unit."""
    if isinstance(value, datetime):
        return theme.moment(value)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    if name == "cost" or name.endswith("_cost"):
        return theme.cost(value)
    if name.endswith("_ms"):
        return theme.gpu_time(value)
    if name.endswith("_ratio"):
        return theme.percent(value)
    if name.endswith("_gpu_s"):
        return theme.gpu_time(1000 * value)
    if name.endswith("_s") and not name.endswith("_per_s"):
        return theme.duration(value)
    for suffix, (divisor, unit) in UNITS.items():
        if name.endswith(suffix):
            return f"{value / divisor:,.0f} {unit}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"

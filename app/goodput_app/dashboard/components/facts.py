"""What a row says beyond the columns of its table, as text: `Power feed: 1A4+1B4 / Events: 3`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import streamlit as st

from goodput_app.dashboard import theme

if TYPE_CHECKING:
    from collections.abc import Mapping

UNITS = {  # suffix of a column -> factor, format
    "_w": (1, "{:,.0f} W"),
    "_c": (1, "{:.0f} °C"),
    "_kwh": (1, "{:,.2f} kWh"),
    "_kg": (1, "{:,.2f} kg CO2e"),
    "_hz": (1e-6, "{:,.0f} MHz"),
    "_bytes_per_s": (1e-9, "{:,.1f} GB/s"),
    "_bytes": (1e-9, "{:,.1f} GB"),
}


def draw(row: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Draw what a row has in some columns; names: column -> header, in order."""
    found = [
        f"{header}: {theme.markdown_text(text(name, row[name]))}"
        for name, header in names.items()
        if row[name] is not None and row[name] != ""
    ]
    if found:
        st.caption(" / ".join(found))


def text(name: str, value: Any) -> str:
    """Return a value as people read it; the suffix of its column says its unit."""
    if isinstance(value, datetime):
        return theme.moment(value)
    if isinstance(value, str) or not isinstance(value, int | float):
        return str(value)
    if name == "cost" or name.endswith("_cost"):
        return theme.cost(value)
    for suffix, (factor, shown) in UNITS.items():
        if name.endswith(suffix):
            return shown.format(value * factor)
    if name.endswith("_ratio"):
        return theme.percent(value)
    if name.endswith("_ms"):
        return theme.gpu_time(value)
    if name.endswith("_s") and not name.endswith("_per_s"):
        return theme.duration(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"

"""A chart and the exact rows behind it, as CSV and Parquet; its own menu has the PNG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import time_zone
from goodput_app.dashboard.components import downloads, tables, wall
from goodput_app.dashboard.figures import readable, zoned
from goodput_app.dashboard.figures.ledger import CONFIG

if TYPE_CHECKING:
    import plotly.graph_objects as go


def draw(figure: go.Figure, rows: pl.DataFrame, key: str, alt: str) -> None:
    """Draw a figure and, folded away, the table of what is drawn. alt: what it shows, in words."""
    st.plotly_chart(_shown(figure), key=key, config=_config(key), alt=alt)
    _table(rows, key)


def pick(figure: go.Figure, rows: pl.DataFrame, key: str, alt: str) -> str | None:
    """Draw the same, and return `customdata[0]` of the mark that was clicked."""
    event: Any = st.plotly_chart(
        _shown(figure),
        key=key,
        config=_config(key),
        alt=alt,
        on_select="rerun",
        selection_mode="points",
    )
    _table(rows, key)
    marks = [point.get("customdata") for point in event.selection.points]
    return next((str(mark[0]) for mark in marks if mark), None)


def _shown(figure: go.Figure) -> go.Figure:
    """Return a figure as it is shown: in the page's time zone, with texts that can be read."""
    in_zone = zoned.in_zone(figure, time_zone.name())
    return readable.readable(in_zone, wall.FONT_PX if wall.is_on() else readable.FONT_PX)


def _config(key: str) -> dict[str, Any]:
    options: dict[str, Any] = CONFIG["toImageButtonOptions"]
    return {**CONFIG, "toImageButtonOptions": {**options, "filename": f"goodput-{key}"}}


def _table(rows: pl.DataFrame, key: str) -> None:
    config = {}
    for name, dtype in rows.schema.items():
        if isinstance(dtype, pl.Datetime):
            series, config[name] = tables.times(rows[name], name)
            rows = rows.with_columns(series)
    with st.expander("Table", icon=":material/table:"):
        st.dataframe(
            rows,
            hide_index=True,
            column_config=config,
            key=f"{key}_table",
            height="auto" if rows.height < 10 else 320,
        )
        downloads.parquet(rows, f"{key}_table")

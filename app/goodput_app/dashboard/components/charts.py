"""A chart and the exact rows behind it, as CSV and Parquet; its own menu has the PNG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from goodput_app.dashboard.components import downloads
from goodput_app.dashboard.figures.ledger import CONFIG

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import polars as pl


def draw(figure: go.Figure, rows: pl.DataFrame, key: str, alt: str) -> None:
    """Draw a figure and, folded away, the table of what is drawn. alt: what it shows, in words."""
    options: dict[str, Any] = CONFIG["toImageButtonOptions"]
    config = {**CONFIG, "toImageButtonOptions": {**options, "filename": f"goodput-{key}"}}
    st.plotly_chart(figure, key=key, config=config, alt=alt)
    with st.expander("Table", icon=":material/table:"):
        st.dataframe(
            rows, hide_index=True, key=f"{key}_table", height="auto" if rows.height < 10 else 320
        )
        downloads.parquet(rows, f"{key}_table")

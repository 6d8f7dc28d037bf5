"""A chart with what belongs to it: PNG from its own menu, and behind it the exact rows, as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

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

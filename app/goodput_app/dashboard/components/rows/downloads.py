"""Downloads of what a table shows; its own menu has CSV."""

import polars as pl
import streamlit as st

from goodput_app.row_formats import as_parquet


def parquet(frame: pl.DataFrame, key: str) -> None:
    """Draw a button that downloads the rows as Parquet; the file is made when it is clicked."""
    if frame.is_empty():
        return
    st.download_button(
        "Parquet",
        data=lambda: as_parquet(frame),
        file_name=f"goodput-{key.replace('_', '-')}.parquet",
        mime="application/vnd.apache.parquet",
        key=f"{key}_parquet",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help="Download the rows of this table as Parquet. CSV is in the table's own menu.",
    )

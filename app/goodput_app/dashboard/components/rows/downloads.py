"""Downloads of what a table shows; its own menu has CSV."""

from collections.abc import Callable
from typing import Literal

import polars as pl
import streamlit as st

from goodput_app.row_formats import as_parquet


def button(
    label: str,
    data: str | bytes | Callable[[], str | bytes],
    file_name: str,
    key: str,
    mime: str | None = None,
    look: Literal["secondary", "tertiary"] = "secondary",
    help: str | None = None,  # noqa: A002 -- Streamlit's word
) -> None:
    """Draw a button that downloads a file; where data is a function, made when it is clicked."""
    st.download_button(
        label, data, file_name, mime, key, help,
        on_click="ignore", type=look, icon=":material/download:",
    )  # fmt: skip


def parquet(frame: pl.DataFrame, key: str) -> None:
    """Draw a button that downloads the rows as Parquet."""
    if not frame.is_empty():
        file = f"goodput-{key.replace('_', '-')}.parquet"
        about = "Download these rows as Parquet. Those of a table are CSV in its own menu."
        mime = "application/vnd.apache.parquet"
        button(
            "Parquet", lambda: as_parquet(frame), file, f"{key}_parquet", mime, "tertiary", about
        )

"""Statements that went out: by which channel, when, and what failed."""

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import tables
from goodput_app.dashboard.data import statements
from goodput_app.dashboard.table_columns import headers
from goodput_queries.errors import GoodputError, StoreError

STATEMENTS_SHOWN = 14
COLUMNS = headers("delivered_statements.columns")
SCHEMA: dict[str, pl.DataType] = {
    "day": pl.String(), "state": pl.String(), "channel": pl.String(),
    "delivered_at": pl.Datetime("us"), "recipients": pl.Int32(), "tried_at": pl.Datetime("us"),
    "attempts": pl.Int32(), "error": pl.String(),
}  # fmt: skip


def show() -> None:
    """Draw how the newest statements fared; what has not arrived comes first."""
    try:
        found = statements.past_statements()
    except StoreError as error:
        st.error(theme.markdown_text(error), icon=":material/folder_off:")
        return
    except GoodputError as error:  # there is no folder to keep any in
        st.caption(theme.markdown_text(error))
        return
    if not found:
        st.caption("No statements delivered yet: see `[report]` in goodput.toml.")
        return
    rows = [
        {
            "day": str(one.date),
            "state": one.state,
            "channel": it.channel,
            "delivered_at": None
            if it.delivered_at is None
            else it.delivered_at.replace(tzinfo=None),
            "recipients": len(it.recipients) or None,
            "tried_at": it.tried_at.replace(tzinfo=None) if it.attempts else None,
            "attempts": it.attempts,
            "error": it.error,
        }
        for one in found[:STATEMENTS_SHOWN]
        for it in one.latest
    ]
    frame = pl.DataFrame(rows, schema=SCHEMA)
    failed = frame.filter(pl.col("error").is_not_null())
    if failed.height:
        st.error(
            f"{failed.height} of {frame.height} deliveries failed; they are tried again.",
            icon=":material/outgoing_mail:",
        )
    tables.show(pl.concat([failed, frame.filter(pl.col("error").is_null())]), COLUMNS, "handed")

"""A chart and the exact rows behind it, as CSV and Parquet; its own menu has the PNG."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import plotly.graph_objects as go
import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import scope_bar, tables, wall
from goodput_app.dashboard.components.rows import downloads
from goodput_app.dashboard.figures import legend, shown
from goodput_app.dashboard.figures.ledger import CONFIG
from goodput_app.text import glossary

AMOUNT = re.compile(r" (\d+\.\d %|\(\d+\))$")  # that an entry of a legend has behind its name
SHORTEST = timedelta(seconds=1)  # of a range that is marked: else it was a click


def draw(figure: go.Figure, rows: pl.DataFrame, key: str, alt: str) -> None:
    """Draw a figure and, folded away, the table of what is drawn. alt: what it shows, in words."""
    st.plotly_chart(_shown(figure), key=key, config=_config(key), alt=alt)
    _legend(figure)
    _table(rows, key)


def over_time(figure: go.Figure, rows: pl.DataFrame, key: str, alt: str) -> None:
    """Draw a chart with a time axis: dragging over it makes what is marked the page's time range.

    Plotly's own zoom would be lost whenever new data come, since Streamlit then makes a new chart.
    """
    ahead = shown.offset_of(figure, time_zone.name())

    def marked() -> None:
        if (times := marked_range(st.session_state[key].selection.box, ahead)) is not None:
            scope_bar.go({"from": time_zone.iso(times[0]), "to": time_zone.iso(times[1])})

    figure.update_layout(dragmode="select", selectdirection="h")
    st.plotly_chart(
        _shown(figure),
        key=key,
        config=_config(key, "lasso2d", "autoScale2d"),
        alt=alt,
        on_select=marked,
        selection_mode="box",
    )
    _legend(figure)
    _table(rows, key)


def marked_range(
    boxes: Sequence[Mapping[str, Any]], ahead: timedelta
) -> tuple[datetime, datetime] | None:
    """Return the ends of the last box on a time axis as naive UTC; None of what is too short.

    ahead: how far the axis is ahead of UTC
    """
    if not boxes:
        return None
    first, last = sorted(datetime.fromisoformat(str(at)) for at in boxes[-1]["x"])
    return (first - ahead, last - ahead) if last - first >= SHORTEST else None


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
    _legend(figure)
    _table(rows, key)
    marks = [point.get("customdata") for point in event.selection.points]
    return next((str(mark[0]) for mark in marks if mark), None)


def _shown(figure: go.Figure) -> go.Figure:
    """Return a figure as it is shown: in the page's time zone, with texts that can be read."""
    in_zone = shown.in_zone(figure, time_zone.name())
    return shown.readable(in_zone, wall.FONT_PX if wall.is_on() else shown.FONT_PX)


def _config(key: str, *without: str) -> dict[str, Any]:
    """Return the tool bar of a chart; without: buttons to leave out, unless the usual ones."""
    options = {**CONFIG["toImageButtonOptions"], "filename": f"goodput-{key}"}
    left_out = list(without) or CONFIG["modeBarButtonsToRemove"]
    return {**CONFIG, "modeBarButtonsToRemove": left_out, "toImageButtonOptions": options}


def _legend(figure: go.Figure) -> None:
    """Draw the legend of a narrow page, and a mark whose hover text defines terms in it."""
    if entries := legend.on_a_narrow_page(figure):
        st.html(entries)
    if texts := definitions(figure):
        lines = [f"**{theme.markdown_text(name)}**: {text}" for name, text in texts.items()]
        st.caption("What the colours mean", help="  \n".join(lines))


def definitions(figure: go.Figure) -> dict[str, str]:
    """Return what the entries of a figure's legend mean, as far as the glossary has them."""
    if figure.layout.showlegend is False:
        return {}
    names = [AMOUNT.sub("", str(t.name)) for t in figure.data if t.showlegend is not False]
    meanings = {name: glossary.meaning(name) for name in names}
    return {name: text for name, text in meanings.items() if text is not None}


def _table(rows: pl.DataFrame, key: str) -> None:
    """Draw the table of what is drawn: its rows are sent once somebody opens it."""
    folded = st.expander("Table", key=f"{key}_rows", icon=":material/table:", on_change="rerun")
    if not folded.open:
        return
    config = {}
    for name, dtype in rows.schema.items():
        if isinstance(dtype, pl.Datetime):
            series, config[name] = tables.times(rows[name], name)
            rows = rows.with_columns(series)
        elif dtype == pl.String:
            rows = rows.with_columns(tables.texts(rows[name]))
    with folded:
        st.dataframe(
            rows,
            hide_index=True,
            column_config=config,
            key=f"{key}_table",
            height="auto" if rows.height < 10 else 320,
        )
        downloads.parquet(rows, f"{key}_table")

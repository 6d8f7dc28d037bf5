"""A legend below a chart, and room for it."""

from typing import Any

import plotly.graph_objects as go

from goodput_app.dashboard.figures import bars

COLUMNS = 3
ROW_PX = 21
CHAR_PX = 5.6  # of a font of 12 px
TOP_PX, BOTTOM_PX = 34, 46


def with_legend(figure: go.Figure, drawn_px: float, *, top_px: int = TOP_PX) -> go.Figure:
    """Return the figure, of which so much is drawn on, with the legend of its traces below."""
    labels = [str(trace.name) for trace in figure.data if trace.showlegend]
    below = BOTTOM_PX + ROW_PX * -(-len(labels) // COLUMNS)
    place = {"orientation": "h", "x": 0, "y": 0, "xanchor": "left", "yanchor": "bottom"}
    width = CHAR_PX * (2 + max((len(label) for label in labels), default=0))
    return figure.update_layout(
        height=top_px + drawn_px + below,
        margin={"t": top_px, "b": below},
        showlegend=bool(labels),
        legend={
            **place,
            "yref": "container",
            "maxheight": below - BOTTOM_PX,
            "traceorder": "normal",
            "font": {"size": 12},
            "entrywidth": width,
        },
    )


def on_a_narrow_page(figure: go.Figure) -> str:
    """Return the legend below a figure as HTML, which wraps; Plotly's scrolls without room.

    '' where it has none.
    """
    layout = figure.layout
    if not layout.showlegend or layout.legend.yref != "container":
        return ""
    marks = {
        trace.name: f'<span><i style="{_mark(trace)}" aria-hidden="true"></i>{trace.name}</span>'
        for trace in figure.data
        if trace.type in ("bar", "scatter") and trace.name and trace.showlegend is not False
    }
    up_px = layout.margin.b - BOTTOM_PX
    return (
        f'<div class="gp-legend" style="margin-top: -{up_px:.0f}px">{"".join(marks.values())}</div>'
    )


def _mark(trace: Any) -> str:
    """Return the CSS of the mark of a trace; an open symbol is an outline."""
    marker, is_bar = trace.marker, trace.type == "bar"
    paints = (marker.color,) if is_bar else (trace.fillcolor, marker.color, trace.line.color)
    colour = next((paint for paint in paints if isinstance(paint, str)), "currentColor")
    shape = (marker.pattern if is_bar else trace.fillpattern).shape or ""
    is_open = not is_bar and "open" in str(marker.symbol)
    return f"border: 2px solid {colour};" + ("" if is_open else bars.filled(colour, str(shape)))

"""A legend below a chart, and room for it."""

import plotly.graph_objects as go

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
            "maxheight": max((top_px + drawn_px + below) / 2, below - BOTTOM_PX),
            "traceorder": "normal",
            "font": {"size": 12},
            "entrywidth": width,
        },
    )

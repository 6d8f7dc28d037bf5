"""A legend below a chart, and room for it."""

import re
from typing import Any

import plotly.graph_objects as go

from goodput_app.dashboard.figures import bars

COLUMNS = 3
ROW_PX = 21
CHAR_PX = 5.6  # of a font of 12 px
TOP_PX, BOTTOM_PX = 34, 46
MARKUP = re.compile(r"[\[\]`*:.@]")  # in a name of the data; of HTML it has none, nor of maths


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
            "maxheight": below - BOTTOM_PX + 6,  # of less it scrolls
            "traceorder": "normal",
            "font": {"size": 12},
            "entrywidth": width,
        },
    )


def on_a_narrow_page(figure: go.Figure) -> str:
    """Return the legend below a figure as HTML, which wraps; '' where it has none."""
    layout = figure.layout
    if not layout.showlegend or layout.legend.yref != "container":
        return ""
    marks = {
        trace.name: f'<span><i style="{_mark(trace)}" aria-hidden="true"></i>'
        f"{MARKUP.sub(lambda found: f'&#{ord(found[0])};', trace.name)}</span>"
        for trace in figure.data
        if trace.type in ("bar", "scatter") and trace.name and trace.showlegend is not False
    }
    place = f"margin-top: {BOTTOM_PX - layout.margin.b:.0f}px"
    return f'<div class="gp-legend" style="{place}">{"".join(marks.values())}</div>'


def _mark(trace: Any) -> str:
    """Return the CSS of the mark of a trace."""
    marker = trace.marker
    if trace.type != "bar" and trace.mode == "lines" and not trace.fillcolor:
        look = {"dot": "dotted", "dash": "dashed"}.get(trace.line.dash, "solid")
        return f"height: 0;border-top: 3px {look} {trace.line.color}"
    if trace.type != "bar":
        cut = "polygon(50% 0, 100% 100%, 0 100%)" if "triangle" in str(marker.symbol) else "none"
        colours = marker.color if isinstance(marker.color, tuple) else (marker.color,)
        return f"background: {trace.fillcolor or colours[0] or trace.line.color};clip-path: {cut}"
    edge = f"border: 1px solid {marker.line.color};" if marker.line.color else ""
    colour = marker.color[0] if isinstance(marker.color, tuple) else marker.color
    return bars.filled(str(colour), str(marker.pattern.shape or "")) + edge

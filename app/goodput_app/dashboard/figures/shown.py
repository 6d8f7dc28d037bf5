"""What a figure gets before it is shown: the clock of a time zone, and texts that can be read.

The functions that draw figures know UTC alone.

Plotly draws dates as they are given, on an axis on which every hour is equally long. So a whole
figure has one offset from UTC, the one at its end, which its axes and hover texts name: that is
the clock of the zone, and where the clock changes within the figure, still a time that is right.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import plotly.graph_objects as go

from goodput_app.dashboard import theme, time_zone

TOOL_BAR_PX = 30  # Plotly draws it over the top of a figure while the pointer is on it
TOP_AXIS_PX = 34  # of the times above lanes
FONT_PX = 12
_HOVER = re.compile(r"(%\{x(?:\|[^}]*)?\}) UTC")
_MS = timedelta(milliseconds=1)


def in_zone(figure: go.Figure, zone: str) -> go.Figure:
    """Return the figure, drawn in UTC, with its times in a zone."""
    times = list(_times(figure))
    if zone == time_zone.DEFAULT or not times:
        return figure
    first, last, ahead = min(times), _last(times), offset_of(figure, zone)
    offset = time_zone.suffix(time_zone.local(last, zone))
    name = f"{zone} ({offset})"
    if time_zone.offset(first, zone) != ahead:
        name = f"{zone}, all at {offset}: its clock changed in this range"
    for trace in figure.data:
        _shift_trace(figure, trace, ahead)
        if isinstance(trace.hovertemplate, str):
            trace.hovertemplate = _HOVER.sub(rf"\1 {offset}", trace.hovertemplate)
    for axis in figure.select_xaxes():
        if axis.range is not None:
            axis.range = _shifted(axis.range, ahead)
        if axis.title.text == time_zone.DEFAULT:
            axis.title.text = name
    for shape in figure.layout.shapes:
        shape.x0, shape.x1 = _shifted((shape.x0, shape.x1), ahead)
    # a zoom is kept while the figure is drawn again, but not on another clock
    return figure.update_layout(uirevision=f"{figure.layout.uirevision} {zone}")


def offset_of(figure: go.Figure, zone: str) -> timedelta:
    """Return how far the times of a figure, drawn in UTC, are moved in a zone."""
    times = list(_times(figure))
    return time_zone.offset(_last(times), zone) if times else timedelta(0)


def _last(times: Sequence[datetime]) -> datetime:
    return max(min(times), max(times) - _MS)  # the end of a window is exclusive


def _times(figure: go.Figure) -> Iterator[datetime]:
    """Yield the first and last moments of the axes, and where they have none, of the traces."""
    ranges = [axis.range for axis in figure.select_xaxes() if axis.range is not None]
    found = [at for ends in ranges for at in ends if isinstance(at, datetime)]
    if found:
        yield from found
        return
    for trace in figure.data:
        for values in (trace.x, getattr(trace, "base", None)):
            yield from _moments(values)


def _moments(values: Any) -> Sequence[datetime]:
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return values.astype("datetime64[ms]").tolist()  # type: ignore[no-any-return]
    return [at for at in _listed(values) if isinstance(at, datetime)]


def _listed(values: Any) -> Any:
    return values if isinstance(values, (tuple, list, np.ndarray)) else ()


def _shift_trace(figure: go.Figure, trace: Any, ahead: timedelta) -> None:
    base = getattr(trace, "base", None)
    if len(_moments(base)):  # a bar from a moment on: `x` is its length
        trace.base = _shifted(base, ahead)
        return
    axis = figure.layout["xaxis" + (trace.xaxis or "x")[1:]]
    is_epoch = axis.type == "date" and isinstance(trace.x, np.ndarray) and trace.x.dtype.kind != "M"
    if is_epoch and trace.x.dtype.kind in "if":
        trace.x = trace.x + ahead / _MS
    elif trace.x is not None:
        trace.x = _shifted(trace.x, ahead)


def _shifted(values: Any, ahead: timedelta) -> Any:
    """Return values of which the moments are so much later."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return values + np.timedelta64(ahead)
    return [at + ahead if isinstance(at, datetime) else at for at in values]


def readable(figure: go.Figure, font_px: int = FONT_PX) -> go.Figure:
    """Return the figure with all texts in the colour of the page, below the tool bar.

    font_px: of all texts but those that have a size of their own, since they have to fit
    """
    # Streamlit's own size is 0.75 rem, which is less than 12 px
    font = {"color": theme.CHART_TEXT, "size": font_px}
    figure.update_layout(font=font, hoverlabel_font=font, legend_font=font)
    for axis in (*figure.select_xaxes(), *figure.select_yaxes()):
        axis.tickfont = {**font, "size": axis.tickfont.size or font_px}
        axis.title.font = font
    if figure.layout.coloraxis.colorbar.title.text is not None:
        figure.update_layout(coloraxis_colorbar={"tickfont": font, "title_font": font})
    figure.update_traces(
        colorbar_tickfont=font, colorbar_title_font=font, selector={"type": "heatmap"}
    )
    if font_px != FONT_PX:
        _enlarge(figure, font_px)
    is_on_top = any(axis.side == "top" for axis in figure.select_xaxes())
    top = TOOL_BAR_PX + (TOP_AXIS_PX * font_px // FONT_PX if is_on_top else 0)
    margin, height = figure.layout.margin, figure.layout.height
    if margin.t is None or height is None or margin.t >= top:
        return figure
    figure.layout.height = height + top - margin.t
    return figure.update_layout(margin_t=top)


def _enlarge(figure: go.Figure, font_px: int) -> None:
    """Make room for the legend in larger type."""
    legend, margin = figure.layout.legend, figure.layout.margin
    if legend.entrywidth is not None and margin.b is not None:
        legend.entrywidth = legend.entrywidth * font_px / FONT_PX
        legend.maxheight = legend.maxheight * font_px / FONT_PX
        more = margin.b * (font_px - FONT_PX) // FONT_PX
        figure.layout.height += more
        figure.update_layout(margin_b=margin.b + more)

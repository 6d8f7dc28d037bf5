"""Texts of a figure that can be read: their colour, their size, and nothing on top of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_app.dashboard import theme

if TYPE_CHECKING:
    import plotly.graph_objects as go

TOOL_BAR_PX = 30  # Plotly draws it over the top of a figure while the pointer is on it
TOP_AXIS_PX = 34  # of the times above lanes
FONT_PX = 12


def readable(figure: go.Figure, font_px: int = FONT_PX) -> go.Figure:
    """Return the figure with all texts in the colour of the page, below the tool bar.

    font_px: of all texts but those that have a size of their own, since they have to fit
    """
    font = {"color": theme.CHART_TEXT}
    figure.update_layout(font=font, hoverlabel_font=font, legend_font={**font, "size": font_px})
    for axes in (figure.update_xaxes, figure.update_yaxes):
        axes(tickfont=font, title_font=font)
    if figure.layout.coloraxis.colorbar.title.text is not None:
        figure.update_layout(coloraxis_colorbar={"tickfont": font, "title_font": font})
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
    """Set larger type, and make room for the larger legend."""
    figure.update_layout(font_size=font_px, hoverlabel_font_size=font_px)
    for axis in (*figure.select_xaxes(), *figure.select_yaxes()):
        axis.tickfont.size = axis.tickfont.size or font_px
        axis.title.font.size = font_px
    legend, margin = figure.layout.legend, figure.layout.margin
    if legend.entrywidth is not None and margin.b is not None:
        legend.entrywidth = legend.entrywidth * font_px / FONT_PX
        more = margin.b * (font_px - FONT_PX) // FONT_PX
        figure.layout.height += more
        figure.update_layout(margin_b=margin.b + more)

"""One metric of a scope over time: its mean and range, or the increase of a counter."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import finished

SCALES = {
    "ratio": ("%", 100.0),
    "Hz": ("MHz", 1e-6),
    "bytes": ("GB", 1e-9),
    "bytes/s": ("GB/s", 1e-9),
}


def over_time(
    frame: pl.DataFrame, metric: Mapping[str, Any], window: tuple[datetime, datetime]
) -> go.Figure:
    """Return a metric over time; frame: at, mean, low, high (with empty rows in holes)."""
    unit, scale = SCALES.get(metric["unit"] or "", (metric["unit"] or "unit not known", 1.0))
    values = {
        name: (frame[name] * scale).round_sig_figs(5).to_list() for name in ("mean", "low", "high")
    }
    at = frame["at"].to_list()
    figure = go.Figure()
    is_counter = metric["kind"] == "counter"
    if is_counter:
        figure.add_bar(
            x=at, y=values["mean"], marker={"color": theme.SERIES_COLOURS[0]}, name="increase",
            hovertemplate=f"%{{y:,}} {unit} in this bin, all GPUs<br>%{{x}} UTC<extra></extra>",
        )  # fmt: skip
    else:
        for name, fill in (("low", "none"), ("high", "tonexty")):
            figure.add_scatter(
                x=at, y=values[name], mode="lines", fill=fill, fillcolor=theme.PEERS_COLOUR,
                line={"width": 0, "color": theme.PEERS_COLOUR}, name=f"{name}est", hoverinfo="skip",
            )  # fmt: skip
        figure.add_scatter(
            x=at, y=values["mean"], mode="lines", line={"color": theme.SERIES_COLOURS[0]},
            name="mean", connectgaps=False,
            hovertemplate=f"mean %{{y:,}} {unit}<br>%{{x}} UTC<extra></extra>",
        )  # fmt: skip
    figure.update_layout(showlegend=False)
    figure.update_xaxes(range=list(window), type="date", title_text="UTC")
    figure.update_yaxes(
        title_text=f"{unit}, increase a bin" if is_counter else unit, automargin=True
    )
    return finished(figure, height=320)

"""Charts of serving engines over time: pure functions from a frame to a Plotly figure."""

from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import finished

LATENCY_PX = 280
LOAD_PX = 430
MODELS_DRAWN = 6
QUANTILES = {"p50": "p50", "p99": "p99"}


def latency(frame: pl.DataFrame, window: tuple[datetime, datetime]) -> go.Figure:
    """Return p50 and p99 of a model over time, each with the bounds of its bucket as a band.

    frame: at, p50_s, p50_low_s, p50_high_s, p99_s ..; a bound over the last bucket is missing; a
    hole has a row of nothing
    """
    figure = go.Figure()
    at = frame["at"].to_list()
    for number, (name, label) in enumerate(QUANTILES.items()):
        colour = theme.SERIES_COLOURS[number]
        low, high = frame[f"{name}_low_s"], frame[f"{name}_high_s"]
        for part in _between_holes(frame, f"{name}_low_s"):
            for end, fill in (("low", "none"), ("high", "tonexty")):
                figure.add_scatter(
                    x=part["at"].to_list(), y=part[f"{name}_{end}_s"].to_list(), mode="lines",
                    fill=fill, fillcolor=_faint(colour), line={"width": 0, "color": colour},
                    hoverinfo="skip", showlegend=False, legendgroup=label, connectgaps=False,
                )  # fmt: skip
        texts = [
            "" if a is None else f"{_seconds(a)} to {_seconds(b) if b else 'over the last bucket'}"
            for a, b in zip(low, high, strict=True)
        ]
        figure.add_scatter(
            x=at, y=frame[f"{name}_s"].to_list(), mode="lines+markers", name=label,
            line={"color": colour}, marker={"size": 5}, legendgroup=label, connectgaps=False,
            customdata=texts,
            hovertemplate=f"{label} %{{y:.3g}} s, in the bucket %{{customdata}}<br>%{{x}} UTC"
            "<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(range=list(window), type="date", title_text="UTC")
    figure.update_yaxes(title_text="seconds", rangemode="tozero", automargin=True)
    return finished(figure, height=LATENCY_PX, has_legend=True)


def load(frame: pl.DataFrame, window: tuple[datetime, datetime]) -> go.Figure:
    """Return tokens per second, waiting requests and KV cache use of models over time.

    frame: rows of marts.serving_over_time with `at`; the models with most tokens are drawn.
    """
    panels: Sequence[tuple[str, str, float]] = (
        ("output_tokens_per_s", "tokens/s", 1),
        ("waiting_requests", "waiting", 1),
        ("kv_cache_max_ratio", "KV cache, %", 100),
    )
    figure = make_subplots(rows=len(panels), cols=1, shared_xaxes=True, vertical_spacing=0.06)
    most = (
        frame.group_by("model")
        .agg(tokens=pl.col("output_tokens_per_s").sum())
        .sort("tokens", "model", descending=[True, False])["model"]
        .head(MODELS_DRAWN)
    )
    for number, model in enumerate(most):
        rows = frame.filter(pl.col("model") == model).sort("at")
        name = theme.plotly_text(model, 40)
        for place, (column, unit, scale) in enumerate(panels, start=1):
            figure.add_scatter(
                x=rows["at"].to_list(), y=(rows[column] * scale).to_list(), row=place, col=1,
                mode="lines+markers", marker={"size": 4}, name=name, legendgroup=name,
                showlegend=place == 1, connectgaps=False,
                line={"color": theme.SERIES_COLOURS[number % len(theme.SERIES_COLOURS)]},
                hovertemplate=f"{name}: %{{y:,.4~g}} {unit}<br>%{{x}} UTC<extra></extra>",
            )  # fmt: skip
            figure.update_yaxes(
                title_text=unit, rangemode="tozero", automargin=True, row=place, col=1
            )
    figure.update_xaxes(range=list(window), type="date")
    figure.update_xaxes(title_text="UTC", row=len(panels), col=1)
    return finished(figure, height=LOAD_PX, has_legend=True)


def _between_holes(frame: pl.DataFrame, name: str) -> list[pl.DataFrame]:
    """Return the rows between those without a value: Plotly fills a band across a hole."""
    is_hole = pl.col(name).is_null()
    parts = frame.with_columns(part=is_hole.cum_sum()).filter(~is_hole)
    return parts.partition_by("part", maintain_order=True)


def _seconds(value: float) -> str:
    return f"{value:.3g} s"


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"

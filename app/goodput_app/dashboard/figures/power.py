"""Power over time: stacked by rack, node or team, with the part of the GPUs that was read below.

A pure function from a frame to a Plotly figure. Names from the data are escaped.
"""

from datetime import datetime
from itertools import cycle
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import PATTERN, finished
from goodput_app.dashboard.figures.legend import with_legend

DRAWN_PX = 330
NAMES_DRAWN = 8
W_PER_KW = 1_000
KW_FROM_W = 10_000
LABEL_CHARS = 30
REST_COLOUR = "#b9c0c9"
AVAILABILITY = {
    "free": ("Unallocated", theme.STYLES["free"].colour, "/"),
    "not_available": ("Not available", theme.STYLES["drained"].colour, "\\"),
}


def over_time(
    frame: pl.DataFrame, bucket_ms: int, window: tuple[datetime, datetime], unknown: str
) -> go.Figure:
    """Return bars of power stacked by name, and below the share of GPU time with readings.

    frame: rows of marts.power_over_time of one level, with `at`; unknown: the label of what has no
    name. Of many names those with most power, the others in one bar. A bucket without a reading
    has no bar.
    """
    figure = make_subplots(
        rows=2, cols=1, shared_xaxes=True, row_heights=[0.8, 0.2], vertical_spacing=0.06
    )
    peak = frame.group_by("at").agg(pl.col("power_w").sum())["power_w"].max() or 0.0
    unit, divisor = ("kW", W_PER_KW) if float(peak) >= KW_FROM_W else ("W", 1)  # type: ignore[arg-type]
    for rows in _series(frame, unknown):
        name = theme.plotly_text(rows["label"][0], LABEL_CHARS)
        figure.add_bar(
            x=rows["at"].dt.offset_by(f"{bucket_ms // 2}ms").to_list(),
            y=(rows["power_w"] / divisor).to_list(),
            width=bucket_ms,
            marker=_look(rows["colour"][0], rows["hatch"][0]),
            name=name,
            showlegend=True,
            hovertemplate=f"{name}: %{{y:,.1f}} {unit}<extra></extra>",
            row=1, col=1,
        )  # fmt: skip
    covered = (
        frame.group_by("at", maintain_order=True)
        .agg(ratio=pl.col("read_ms").sum() / pl.col("here_ms").sum())
        .sort("at")
    )
    figure.add_scatter(
        x=[*covered["at"].to_list(), *_end(covered, bucket_ms)],
        y=[100 * ratio for ratio in [*covered["ratio"], *covered["ratio"].tail(1)]],
        mode="lines",
        line={"width": 1.4, "shape": "hv", "color": theme.BASELINE_COLOUR},
        fill="tozeroy",
        fillcolor=theme.PEERS_COLOUR,
        showlegend=False,
        hovertemplate="%{y:.0f} % of GPU time with a power reading<extra></extra>",
        row=2, col=1,
    )  # fmt: skip
    figure.update_layout(
        barmode="stack", bargap=0, hovermode="x unified", hoverlabel={"namelength": -1},
        uirevision="keep",
    )  # fmt: skip
    figure.update_xaxes(range=list(window), type="date")
    figure.update_xaxes(title_text="UTC", row=2)
    figure.update_yaxes(title_text=f"Power ({unit})", rangemode="tozero", automargin=True, row=1)
    figure.update_yaxes(title_text="Read (%)", range=[0, 105], dtick=50, automargin=True, row=2)
    figure.update_layout(margin={"l": 8, "r": 12})
    return with_legend(figure, DRAWN_PX, top_px=16)


def _series(frame: pl.DataFrame, unknown: str) -> list[pl.DataFrame]:
    """Return the series from the bottom of the stack to its top: at, power_w, label, colour, hatch.

    Names with most power come first, then the sum of the others, then what no job run had.
    """
    rows = frame.drop_nulls("power_w")
    is_held = pl.col("availability").is_in(list(AVAILABILITY)).not_().fill_null(value=True)
    name = pl.col("name").fill_null(unknown)
    if frame["cluster"].n_unique() > 1:
        name = pl.format("{} ({})", name, "cluster")
    held = rows.filter(is_held).with_columns(label=name)
    sums = held.group_by("label").agg(pl.col("power_w").sum())
    order = sums.sort("power_w", "label", descending=[True, False])["label"].to_list()
    shown = order if len(order) <= NAMES_DRAWN + 1 else order[:NAMES_DRAWN]
    found = [
        _added(held.filter(pl.col("label") == label), label, colour)
        for label, colour in zip(shown, cycle(theme.SERIES_COLOURS), strict=False)
    ]
    if len(order) > len(shown):
        others = held.filter(~pl.col("label").is_in(shown))
        found.append(_added(others, f"{len(order) - len(shown)} more", REST_COLOUR))
    for availability, (label, colour, hatch) in AVAILABILITY.items():
        of_it = rows.filter(pl.col("availability") == availability)
        found.append(_added(of_it, label, colour, hatch))
    return [series for series in found if not series.is_empty()]


def _added(rows: pl.DataFrame, label: str, colour: str, hatch: str = "") -> pl.DataFrame:
    """Return the power of some rows by bucket, with a label and a look."""
    sums = rows.group_by("at").agg(pl.col("power_w").sum()).sort("at")
    return sums.with_columns(label=pl.lit(label), colour=pl.lit(colour), hatch=pl.lit(hatch))


def _look(colour: str, hatch: str) -> dict[str, Any]:
    return {"color": colour, "line": {"width": 0}, "pattern": {**PATTERN, "shape": hatch}}


def _end(covered: pl.DataFrame, bucket_ms: int) -> list[datetime]:
    """Return where the last bucket ends."""
    return covered["at"].tail(1).dt.offset_by(f"{bucket_ms}ms").to_list()


def clock_by_temperature(frame: pl.DataFrame) -> go.Figure:
    """Return a point for each bin. frame: gpu, gpu_temperature_c, sm_clock_hz."""
    figure = go.Figure()
    for (name,), rows in frame.group_by("gpu", maintain_order=True):
        clock_mhz = (rows["sm_clock_hz"] / 1e6).to_list()
        figure.add_scattergl(
            x=rows["gpu_temperature_c"].to_list(), y=clock_mhz, mode="markers", name=str(name),
            marker={"size": 4},
        )  # fmt: skip
    figure.update_xaxes(title_text="Temperature (°C)")
    figure.update_yaxes(title_text="SM clock (MHz)")
    return finished(figure, height=DRAWN_PX, has_legend=True)

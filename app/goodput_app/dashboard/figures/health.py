"""Charts of health: pure functions from a frame to a Plotly figure."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import ROW_PX, finished, marker
from goodput_app.text import units

CELLS_WITH_TEXT = 8  # days side by side in which a number has room
NODE_MAX_CHARS = 24
TICKS = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
SAME = {"marker": {"opacity": 1}}  # a click opens a page and dims nothing
HOUR_S = 3_600


def node_days(frame: pl.DataFrame, days: Sequence[datetime], kind: Mapping[str, Any]) -> go.Figure:
    """Return nodes by day, coloured by the value; a day that was not read is hatched grey.

    frame: cluster, node, day_at, value. days: all days of the axis. kind: of
    reference.health_kinds. Cells are bars, which can be clicked: customdata has cluster, node and
    day as JSON.
    """
    has_one = frame["cluster"].n_unique() <= 1
    name_of = {
        (cluster, node): theme.plotly_text(
            node if has_one else f"{cluster}: {node}", NODE_MAX_CHARS
        )
        for cluster, node in frame.select("cluster", "node").unique(maintain_order=True).rows()
    }
    known = {(row["cluster"], row["node"], row["day_at"]): row["value"]
             for row in frame.iter_rows(named=True)}  # fmt: skip
    places = [
        (place, day, known.get((*key, at)))
        for place, key in enumerate(name_of)
        for day, at in enumerate(days)
    ]
    none = [(place, day, "0") for place, day, value in places if value == 0]
    unread = [(place, day, "not read") for place, day, value in places if value is None]
    unit, scale = ("GPU-h", HOUR_S) if kind["unit"] == "GPU-s" else (kind["unit"], 1)
    read = [(place, day, value / scale) for place, day, value in places if value]
    top = max([1.0, *(value for *_, value in read)])
    figure = go.Figure()
    figure.add_bar(
        **_cells([(p, d, f"{_number(value, unit)} {unit}") for p, d, value in read], name_of, days),
        marker={
            "color": [math.log10(1 + value) for *_, value in read],
            "coloraxis": "coloraxis",
            "line": {"width": 0},
        },
        text=[_number(value, unit) for *_, value in read],
        textangle=0,
        textposition="inside" if len(days) <= CELLS_WITH_TEXT else "none",
        insidetextanchor="middle",
        name="read",
    )
    look = {"color": theme.PEERS_COLOUR, "line": {"width": 0}}
    figure.add_bar(**_cells(none, name_of, days), marker=look, name="0")
    figure.add_bar(**_cells(unread, name_of, days), marker=marker("unknown"), name="not read")
    figure.update_traces(
        hovertemplate="%{hovertext}<extra></extra>", selected=SAME, unselected=SAME
    )
    figure.update_layout(
        barmode="overlay", bargap=0.08, showlegend=False, coloraxis=_scale(top, unit)
    )
    _name_axes(figure, list(name_of.values()), days)
    return finished(figure, height=90 + (ROW_PX - 5) * max(4, len(name_of)))


def _scale(top: float, unit: str) -> dict[str, Any]:
    """Return the colours from 0 to the highest value, by its logarithm: a few have thousands."""
    ticks = [tick for tick in TICKS if tick <= top / 1.5] + [round(top)]
    return {
        "colorscale": theme.HEATMAP_SCALE,
        "cmin": 0,
        "cmax": math.log10(1 + top),
        "colorbar": {
            "title": {"text": unit, "side": "right"},
            "thickness": 10,
            "tickvals": [math.log10(1 + tick) for tick in ticks],
            "ticktext": [f"{tick:,}" for tick in ticks],
        },
    }


def _name_axes(figure: go.Figure, names: Sequence[str], days: Sequence[datetime]) -> None:
    every = max(1, -(-len(days) // 12))
    figure.update_xaxes(
        range=[0, max(1, len(days))],
        tickvals=[day + 0.5 for day in range(0, len(days), every)],
        ticktext=[f"{at:%b %d}" for at in days[::every]],
        title_text="day (UTC)",
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=list(names),
        range=[len(names) - 0.5, -0.5],
        automargin=True,
        showgrid=False,
        zeroline=False,
    )


def _cells(
    cells: Sequence[tuple[int, int, str]],
    names: Mapping[tuple[str, str], str],
    days: Sequence[datetime],
) -> dict[str, Any]:
    """Return the bars that fill these cells: place of the node, place of the day, text."""
    keys, shown = list(names), list(names.values())
    return {
        "y": [place for place, *_ in cells],
        "x": [0.96] * len(cells),
        "base": [day + 0.02 for _, day, _ in cells],
        "orientation": "h",
        "customdata": [
            [json.dumps([*keys[place], f"{days[day]:%Y-%m-%d}"])] for place, day, _ in cells
        ],
        "hovertext": [f"{shown[p]}, {days[d]:%Y-%m-%d}: {text}" for p, d, text in cells],
    }


def _number(value: float, unit: str) -> str:
    return f"{value:,.1f}" if unit == "GPU-h" else f"{value:,.0f}"


def reliability(frame: pl.DataFrame) -> go.Figure:
    """Return the time between failures by job size with its 95 % interval, on two log axes.

    frame: marts.reliability_by_job_size. Without a failure an arrow shows that the time is at least
    the lower bound.
    """
    figure = go.Figure()
    clusters = frame["cluster"].unique(maintain_order=True).to_list()
    for number, cluster in enumerate(clusters):
        rows = frame.filter(frame["cluster"] == cluster).to_dicts()
        colour = theme.SERIES_COLOURS[number % len(theme.SERIES_COLOURS)]
        failed = [row for row in rows if row["failures"]]
        spared = [row for row in rows if not row["failures"]]
        name = theme.plotly_text(cluster)
        figure.add_scatter(
            x=[row["gpus_to"] for row in failed],
            y=[row["mtbf_s"] / HOUR_S for row in failed],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [(row["mtbf_high_s"] - row["mtbf_s"]) / HOUR_S for row in failed],
                "arrayminus": [(row["mtbf_s"] - row["mtbf_low_s"]) / HOUR_S for row in failed],
                "thickness": 1.5,
            },
            mode="lines+markers",
            line={"color": colour, "dash": "dot", "width": 1},
            marker={"color": colour, "size": 9},
            customdata=[_size(row) for row in failed],
            hovertemplate="%{customdata}<extra></extra>",
            name=name,
        )
        figure.add_scatter(
            x=[row["gpus_to"] for row in spared],
            y=[row["mtbf_low_s"] / HOUR_S for row in spared],
            mode="markers",
            marker={"color": colour, "size": 11, "symbol": "triangle-up-open"},
            customdata=[_size(row) for row in spared],
            hovertemplate="%{customdata}<extra></extra>",
            name=f"{name}: no failure, at least",
        )
    sizes = sorted(frame["gpus_to"].unique().to_list())
    figure.update_xaxes(
        type="log", title_text="GPUs of the attempt", tickvals=sizes, ticktext=_labels(frame)
    )
    figure.update_yaxes(type="log", dtick=1, title_text="hours between failures", automargin=True)
    return finished(figure, height=340, has_legend=True)


def _labels(frame: pl.DataFrame) -> list[str]:
    pairs = frame.select("gpus_from", "gpus_to").unique().sort("gpus_to").rows()
    return [f"{low}-{high}" if low < high else f"{high}" for low, high in pairs]


def _size(row: Mapping[str, Any]) -> str:
    low, high = (units.duration(row[name]) for name in ("mtbf_low_s", "mtbf_high_s"))
    of = units.count(row["gpus_to"], "GPU")
    if row["gpus_from"] < row["gpus_to"]:
        of = f"{row['gpus_from']} to {of}"
    if not row["failures"]:
        between = f"no failure: at least {low}"
    else:
        between = f"{units.duration(row['mtbf_s'])} ({low} to {high})"
    return (
        f"{of}: {between}<br>{units.count(row['failures'], 'failure')} in "
        f"{units.count(row['attempts'], 'attempt')}, {units.gpu_time(row['gpu_ms'])}"
    )

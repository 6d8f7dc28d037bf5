"""Rows over time (GPUs, nodes or racks): shares of the ledger or a heatmap; allocations below.

A pure function from frames to a Plotly figure. `customdata[0]` of a mark is what it opens. Names
from the data are escaped.
"""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.figures.fleet import cell_colours
from goodput_app.dashboard.figures.ledger import finished, marker
from goodput_app.dashboard.figures.legend import TOP_PX, with_legend
from goodput_app.text import units

ROW_PX, ROW_PX_MIN = 16, 6
LANE_PX, BAR_HEIGHT = 24, 0.88  # of shares
ROWS_NAMED = 48
TICK_PX = 14
RUN_PX = 22
SPACE_PX = 46
HOUR_MS = 3_600_000
NAME_MAX_CHARS = 28
LINK_RATIO = 0.007  # of the width: a mark on the edge cannot be clicked
LABELLED = 0.2  # of the width: shorter bars have no text


def over_time(
    rows: pl.DataFrame,
    bins: pl.DataFrame,
    bars: pl.DataFrame,
    events: pl.DataFrame,
    metric: cell_colours.Metric | None,
    bin_ms: int,
    window: tuple[datetime, datetime],
) -> go.Figure:
    """Return rows over time, and below the allocations of runs on the same axis.

    Of a metric the rows are those of a heatmap; without one they are the ledger in shares.

    rows: `key`, `id` (empty: opens nothing), `name`, `group`, in order from the top; bins: `key`,
    `at`, and `category`, `label`, `colour`, `gpu_ms`, or `value`; bars: data.fleet.allocations;
    events: `lane` (a key), `at`, `hover`
    """
    row_px = max(ROW_PX_MIN, min(ROW_PX, 700 // max(1, rows.height)))
    row_px = LANE_PX if metric is None else row_px
    runs = bars["run_key"].unique(maintain_order=True).to_list()
    heights = [max(60, row_px * rows.height), max(RUN_PX, RUN_PX * len(runs))]
    total = sum(heights) + SPACE_PX
    figure = make_subplots(
        rows=2, cols=1, shared_xaxes=True, row_heights=[h / sum(heights) for h in heights],
        vertical_spacing=SPACE_PX / total,
        subplot_titles=["", "Allocations of the runs with most GPU time"],
    )  # fmt: skip
    figure.update_annotations(x=0, xanchor="left", font={"size": 12})
    figure.add_shape(  # what no cell covers
        type="rect", x0=window[0], x1=window[1], y0=-0.5, y1=max(rows.height, 1) - 0.5,
        fillcolor=cell_colours.NO_DATA_COLOUR, line={"width": 0}, layer="below", row=1, col=1,
    )  # fmt: skip
    names = _names(rows["name"])
    if metric is None:
        _shares(figure, rows["key"], names, bins, bin_ms)
    else:
        _heatmap(figure, rows["key"], names, bins, metric, bin_ms, heights[0] / total)
    _marks(figure, rows["key"], rows["id"], names, events)
    _links(figure, rows["id"], names, window)
    _runs(figure, bars, runs, window)
    _name_rows(figure, rows, names, row_px)
    figure.update_xaxes(range=list(window), type="date", showgrid=False)
    figure.update_xaxes(showticklabels=True, side="top", row=1)
    figure.update_xaxes(title_text="UTC", row=2)
    figure.update_layout(barmode="overlay", bargap=0.2, hovermode="closest")
    return with_legend(finished(figure, height=TOP_PX), total)


def _names(names: pl.Series) -> list[str]:
    """Return names as labels; those that are alike, or are when they are cut, have a number."""
    found: dict[str, None] = {}
    for name in names.to_list():
        label = theme.plotly_text(name, NAME_MAX_CHARS)
        number = 1
        while label in found:
            number += 1
            label = f"{theme.plotly_text(name, NAME_MAX_CHARS)} ({number})"
        found[label] = None
    return list(found)


def _name_rows(figure: go.Figure, rows: pl.DataFrame, names: Sequence[str], row_px: int) -> None:
    """Name each row; where there are too many, the first of each group, as far as there is room."""
    named = rows.with_columns(
        tick=pl.Series(names, dtype=pl.String), text=pl.Series(names, dtype=pl.String)
    )
    if rows.height > ROWS_NAMED:
        texts = [theme.plotly_text(name, NAME_MAX_CHARS) for name in rows["group"].to_list()]
        named = named.with_columns(text=pl.Series(texts, dtype=pl.String))
        apart, shown, last = -(-TICK_PX // row_px), [], -rows.height
        for y, is_first in enumerate(pl.Series(texts).rle_id().diff().fill_null(1) != 0):
            if is_first and y - last >= apart:
                shown.append(y)
                last = y
        named = named[shown]
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=list(names),
        tickvals=named["tick"].to_list(),
        ticktext=named["text"].to_list(),
        range=[max(rows.height, 1) - 0.5, -0.5],
        tickfont={"size": 12},
        automargin=True,
        showgrid=False,
        zeroline=False,
        row=1,
    )


def _heatmap(
    figure: go.Figure,
    keys: pl.Series,
    names: Sequence[str],
    bins: pl.DataFrame,
    metric: cell_colours.Metric,
    bin_ms: int,
    height_ratio: float,
) -> None:
    """Add the bins of a metric; what has no bin or no value stays empty."""
    number = {key: y for y, key in enumerate(keys.to_list())}
    ms = pl.col("at").dt.epoch("ms")
    y = pl.col("key").replace_strict(number, default=None, return_dtype=pl.Int64)
    cells = bins.with_columns(x=(ms - ms.min()) // bin_ms, y=y).drop_nulls("y")
    if cells.is_empty():
        return
    first = np.datetime64(int(cells.select(ms.min()).item()), "ms")
    across = int(cells["x"].max()) + 1  # type: ignore[arg-type]
    values = np.full((keys.len(), across), np.nan, dtype=np.float32)
    values[cells["y"].to_numpy(), cells["x"].to_numpy()] = (
        cells["value"].cast(pl.Float64) * metric.scale
    ).to_numpy()
    bar = {**cell_colours.colour_bar(metric), "len": height_ratio, "y": 1, "yanchor": "top"}
    of_values = values[~np.isnan(values)]
    ends = (of_values.min(), of_values.max()) if of_values.size else (0, 1)
    shown = f"{metric.name}: %{{z:,.1f}} {metric.unit}"
    figure.add_heatmap(
        z=values,
        x=first + np.arange(across + 1) * np.timedelta64(bin_ms, "ms"),  # edges
        y=list(names),
        hoverongaps=False,
        hovertemplate=f"%{{y}}: {shown}<br>%{{x|%Y-%m-%d %H:%M}} UTC<extra></extra>",
        **cell_colours.colour_scale(metric, *ends, prefix="z"),
        colorbar=bar,
        row=1,
        col=1,
    )


def _shares(
    figure: go.Figure, keys: pl.Series, names: Sequence[str], bins: pl.DataFrame, bin_ms: int
) -> None:
    """Add the ledger of each row and bin as bars one on the other: the row is all of the bin."""
    named = dict(zip(keys.to_list(), names, strict=True))
    share = pl.col("gpu_ms") / pl.col("gpu_ms").sum().over("key", "at")
    rank = pl.col("category").map_elements(theme.rank, return_dtype=pl.Int64, skip_nulls=False)
    stacked = (
        bins.filter(pl.col("key").is_in(list(named)))
        .sort("key", "at", rank, "label")
        .with_columns(share=share)
        .with_columns(above=pl.col("share").cum_sum().over("key", "at"))
    )
    for label, colour in cell_colours.labels_of(stacked):
        of_it = stacked.filter(pl.col("label") == label)
        name = theme.plotly_text(label)
        amounts = of_it.select("share", pl.col("gpu_ms") / HOUR_MS).to_numpy()
        figure.add_bar(
            y=[named[key] for key in of_it["key"].to_list()],
            x=np.full(of_it.height, bin_ms, dtype=np.float32),
            base=of_it["at"].to_list(),
            width=(BAR_HEIGHT * of_it["share"]).cast(pl.Float32).to_numpy(),
            offset=(BAR_HEIGHT * (0.5 - of_it["above"])).cast(pl.Float32).to_numpy(),
            orientation="h",
            marker=marker(colour),
            name=name,
            showlegend=True,
            customdata=amounts.astype(np.float32),
            hovertemplate=f"%{{y}}: {name} "
            "%{customdata[0]:.1%}, %{customdata[1]:,.1f} GPU-h"
            "<br>until %{x|%Y-%m-%d %H:%M} UTC<extra></extra>",
            row=1,
            col=1,
        )


def _marks(
    figure: go.Figure, keys: pl.Series, ids: pl.Series, names: Sequence[str], events: pl.DataFrame
) -> None:
    """Add a mark for each event of a row."""
    of_key = dict(zip(keys, zip(ids, names, strict=True), strict=True))
    found = [
        (at, of_key[key], hover)
        for key, at, hover in events.select("lane", "at", "hover").iter_rows()
        if key in of_key
    ]
    if not found:
        return
    figure.add_scatter(
        x=[at for at, _, _ in found],
        y=[name for _, (_, name), _ in found],
        mode="markers",
        marker=cell_colours.EVENT_MARK,
        name=cell_colours.EVENTS,
        showlegend=True,
        customdata=[(opens, hover) for _, (opens, _), hover in found],
        hovertemplate="%{y}: %{customdata[1]}<br>%{x|%Y-%m-%d %H:%M:%S} UTC<extra></extra>",
        row=1,
        col=1,
    )


def _links(
    figure: go.Figure, ids: pl.Series, names: Sequence[str], window: tuple[datetime, datetime]
) -> None:
    """Add a mark at the end of each row that opens it: cells of a heatmap cannot be clicked."""
    at = window[1] - LINK_RATIO * (window[1] - window[0])
    opened = {name: one for name, one in zip(names, ids.to_list(), strict=True) if one}
    figure.add_scatter(
        x=[at] * len(opened),
        y=list(opened),
        mode="markers",
        marker={
            "symbol": "triangle-right",
            "size": 9,
            "color": theme.MARK_COLOUR,
            "line": {"width": 1, "color": theme.HOLDER_COLOURS[0]},
        },
        showlegend=False,
        customdata=[(one,) for one in opened.values()],
        hovertemplate="Open %{y}<extra></extra>",
        row=1,
        col=1,
    )


def _runs(
    figure: go.Figure,
    bars: pl.DataFrame,
    runs: Sequence[str],
    window: tuple[datetime, datetime],
) -> None:
    """Add a lane for each run and in it a bar for each of its job runs."""
    lane_of = {run: f"{n}" for n, run in enumerate(runs)}
    named = bars.unique("run_key", keep="first", maintain_order=True)
    names = [row["job_name"] or row["run_id"] for row in named.iter_rows(named=True)]
    lengths = (bars["end_at"] - bars["start_at"]).to_list()
    # those of one run that follow each other differ
    turns = bars.select(pl.int_range(pl.len()).over("run_key")).to_series().to_list()
    hovers = []
    for row in bars.iter_rows(named=True):
        facts = (row["run_id"], row["job_name"], row["team"], units.count(row["gpus"], "GPU"))
        span = time_zone.window(row["start_at"], row["end_at"])
        hovers.append("<br>".join([*(theme.plotly_text(f) for f in facts if f), span]))
    figure.add_bar(
        y=[lane_of[run] for run in bars["run_key"].to_list()],
        x=[length.total_seconds() * 1000 for length in lengths],
        base=bars["start_at"].to_list(),
        orientation="h",
        marker={"color": [theme.HOLDER_COLOURS[n % 2] for n in turns], "line": {"width": 0}},
        name="Allocated",
        text=[
            units.count(row["gpus"], "GPU")
            if lengths[n] > LABELLED * (window[1] - window[0])
            else ""
            for n, row in enumerate(bars.iter_rows(named=True))
        ],
        textposition="inside",
        insidetextanchor="start",
        textfont={"color": "#ffffff", "size": 12},
        constraintext="none",
        showlegend=False,
        customdata=list(zip([f"run:{run}" for run in bars["run_key"]], hovers, strict=True)),
        hovertemplate="%{customdata[1]}<extra></extra>",
        row=2,
        col=1,
    )
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=list(lane_of.values()),
        tickvals=list(lane_of.values()),
        ticktext=[theme.plotly_text(name, NAME_MAX_CHARS) for name in names],
        range=[max(len(runs), 1) - 0.5, -0.5],
        tickfont={"size": 12},
        automargin=True,
        row=2,
    )

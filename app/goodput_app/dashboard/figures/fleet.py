"""Charts of the fleet: the rack grid, and rows over time with the allocations below.

Pure functions from frames to a Plotly figure. Cells are bars, so that they scale with the page, can
be clicked and hatched. `customdata[0]` of a mark is what it opens. Names from the data are escaped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import finished, marker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

CELL_PX = 17
CELLS_ACROSS = 36
NODES_DOWN = 18  # of a rack: more go on in a column of their own
TITLE_CELLS = 1.5
GAP_CELLS = 1.0
CELL_SIZE = 0.88
ROW_PX, ROW_PX_MIN = 16, 6
ROWS_NAMED = 48
RUN_PX = 22
SPACE_PX = 46
LEGEND_COLUMNS = 3
LEGEND_ROW_PX = 20
LEGEND_CHAR_PX = 5.8
TOP_PX, BOTTOM_PX = 34, 46
NAME_MAX_CHARS = 28
FULL = 0.9995
LINK_RATIO = 0.007  # of the width: a mark on the edge cannot be clicked
LABELLED = 0.07  # of the width: shorter bars have no text
SCALE_CELLS = 7.0  # height that a colour bar needs
NO_DATA = "No data"
NO_DATA_COLOUR = "rgba(138, 148, 163, 0.28)"
EVENTS = "Events"


@dataclass(frozen=True)
class Metric:
    """A metric that colours cells: its name, unit and the factor from the base unit."""

    name: str
    unit: str
    scale: float = 1.0
    is_share: bool = False


def placed(cells: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, float]:
    """Return cells with `x` and `y`, the titles of racks with theirs, and the height of all.

    cells: `block` (name of the rack), `line` (a node of it), in order. The cells of a line stand
    next to each other; racks fill the width and go on below.
    """
    sized = (
        cells.with_columns(block_nr=pl.col("block").rle_id())
        .with_columns(line_nr=pl.col("line").rle_id())
        .with_columns(
            line_nr=pl.col("line_nr") - pl.col("line_nr").min().over("block_nr"),
            place=pl.int_range(pl.len()).over("block_nr", "line"),
        )
        .with_columns(part=pl.col("line_nr") // NODES_DOWN, line_nr=pl.col("line_nr") % NODES_DOWN)
    )
    blocks = sized.group_by("block_nr", "part", maintain_order=True).agg(
        pl.col("block").first(), width=pl.col("place").max() + 1, down=pl.col("line_nr").max() + 1
    )
    x, y, deepest, spots = 0.0, 0.0, 0.0, []
    for row in blocks.iter_rows(named=True):
        if x > 0 and x + row["width"] > CELLS_ACROSS:
            x, y, deepest = 0.0, y + TITLE_CELLS + deepest, 0.0
        title = row["block"] if row["part"] == 0 else ""
        spots.append((row["block_nr"], row["part"], title, x, y + TITLE_CELLS))
        x += row["width"] + GAP_CELLS
        deepest = max(deepest, row["down"])
    schema = {
        "block_nr": sized.schema["block_nr"],
        "part": sized.schema["part"],
        "title": pl.String(),
        "x0": pl.Float64(),
        "y0": pl.Float64(),
    }
    titles = pl.DataFrame(spots, schema=schema, orient="row")
    found = sized.join(titles, on=["block_nr", "part"], how="left", maintain_order="left")
    at = found.with_columns(x=pl.col("x0") + pl.col("place"), y=pl.col("y0") + pl.col("line_nr"))
    return at.drop("x0", "y0", "title"), titles, y + TITLE_CELLS + deepest


def rack_grid(cells: pl.DataFrame, metric: Metric | None) -> go.Figure:
    """Return a cell for each GPU (or node) in its rack, by category or by a metric.

    cells: `block`, `line`, `id`, `hover` (escaped), `events`, and `category`, `label` and `colour`,
    or `value`
    """
    at, titles, height = placed(cells)
    if metric is not None:
        height = max(height, SCALE_CELLS)
    figure = go.Figure()
    if metric is None:
        for label, colour in _labels(at):
            of_it = at.filter(pl.col("label").eq_missing(pl.lit(label)))
            name = f"{theme.plotly_text(label or NO_DATA)} ({of_it.height})"
            _add_cells(figure, of_it, marker(colour), name, is_in_legend=True)
    else:
        scaled = at.with_columns(pl.col("value") * metric.scale)
        missing = scaled.filter(pl.col("value").is_null())
        _add_cells(
            figure,
            scaled.drop_nulls("value"),
            _coloured(scaled, metric),
            metric.name,
            is_in_legend=False,
        )
        if not missing.is_empty():
            look = {"color": NO_DATA_COLOUR, "line": {"width": 0}}
            _add_cells(figure, missing, look, f"{NO_DATA} ({missing.height})", is_in_legend=True)
    _add_events(figure, at.filter(pl.col("events") > 0))
    for title, x, y in titles.filter(pl.col("title") != "").select("title", "x0", "y0").iter_rows():
        figure.add_annotation(
            x=x, y=y - 0.1, text=theme.plotly_text(title, 24), showarrow=False, xanchor="left",
            yanchor="bottom", font={"size": 12},
        )  # fmt: skip
    hidden = {"visible": False, "fixedrange": True}
    figure.update_xaxes(**hidden, range=[-0.2, CELLS_ACROSS + 0.2])
    figure.update_yaxes(**hidden, range=[height + 0.2, 0])
    figure.update_layout(barmode="overlay", hovermode="closest")
    return _with_legend(finished(figure, height=TOP_PX), height * CELL_PX, top_px=4)


def _labels(frame: pl.DataFrame) -> list[tuple[str | None, str | None]]:
    """Return the categories of a frame in the order of legends: label and colour."""
    found = frame.select("category", "label", "colour").unique().to_dicts()
    found.sort(key=lambda row: theme.rank(row["category"] or ""))
    return [(row["label"], row["colour"]) for row in found]


def _add_cells(
    figure: go.Figure, cells: pl.DataFrame, look: dict[str, Any], name: str, *, is_in_legend: bool
) -> None:
    figure.add_bar(
        x=(cells["x"] + 0.5).to_numpy(),
        y=np.full(cells.height, CELL_SIZE),
        base=cells["y"].to_numpy(),
        width=CELL_SIZE,
        marker=look,
        name=name,
        showlegend=is_in_legend,
        customdata=cells.select("id", "hover").rows(),
        hovertemplate="%{customdata[1]}<extra></extra>",
    )


def _coloured(cells: pl.DataFrame, metric: Metric) -> dict[str, Any]:
    values = cells["value"].drop_nulls()
    return {
        "color": values.cast(pl.Float32).to_numpy(),
        "line": {"width": 0},
        **_scale(metric, values.min(), values.max()),
        "showscale": True,
        "colorbar": _bar(metric),
    }


def _scale(metric: Metric, low: Any, high: Any, *, prefix: str = "c") -> dict[str, Any]:
    """Return the colour scale: of a share from 0 to 100 %, else from the lowest to the highest."""
    ends = (0.0, 100.0) if metric.is_share else (float(low or 0), float(high or 0))
    if ends[0] == ends[1]:
        ends = ends[0] - 1, ends[1] + 1
    return {"colorscale": theme.HEATMAP_SCALE, f"{prefix}min": ends[0], f"{prefix}max": ends[1]}


def _bar(metric: Metric) -> dict[str, Any]:
    return {
        "title": {"text": metric.unit, "side": "top"}, "thickness": 12, "len": 1.0,
        "xpad": 6, "nticks": 5, "outlinewidth": 0,
    }  # fmt: skip


def _add_events(figure: go.Figure, cells: pl.DataFrame) -> None:
    if cells.is_empty():
        return
    figure.add_scatter(
        x=(cells["x"] + 0.5).to_numpy(),
        y=(cells["y"] + CELL_SIZE / 2).to_numpy(),
        mode="markers",
        marker={
            "symbol": "diamond", "size": 7, "color": theme.STYLES["fault"].colour,
            "line": {"width": 1, "color": theme.MARK_COLOUR},
        },
        name=f"{EVENTS} ({cells.height})",
        showlegend=True,
        customdata=cells.select("id", "hover").rows(),
        hovertemplate="%{customdata[1]}<extra></extra>",
    )  # fmt: skip


def over_time(
    rows: pl.DataFrame,
    bins: pl.DataFrame,
    bars: pl.DataFrame,
    metric: Metric | None,
    bin_ms: int,
    window: tuple[datetime, datetime],
) -> go.Figure:
    """Return rows over time as a heatmap, and below the allocations of runs on the same axis.

    rows: `key`, `id`, `name`, `group`, in order from the top; bins: `key`, `at`, and `category`,
    `label`, `colour`, `share_ratio`, or `value`; bars: data.fleet.allocations
    """
    row_px = max(ROW_PX_MIN, min(ROW_PX, 700 // max(1, rows.height)))
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
        fillcolor=NO_DATA_COLOUR, line={"width": 0}, layer="below", row=1, col=1,
    )  # fmt: skip
    names = _names(rows["name"])
    _heatmap(figure, rows["key"], names, bins, metric, bin_ms, heights[0] / total)
    _links(figure, rows["id"], names, window)
    _runs(figure, bars, runs, window)
    _name_rows(figure, rows, names)
    figure.update_xaxes(range=list(window), type="date", showgrid=False)
    figure.update_xaxes(showticklabels=True, side="top", row=1)
    figure.update_xaxes(title_text="UTC", row=2)
    figure.update_layout(barmode="overlay", bargap=0.2, hovermode="closest")
    return _with_legend(finished(figure, height=TOP_PX), total)


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


def _name_rows(figure: go.Figure, rows: pl.DataFrame, names: Sequence[str]) -> None:
    """Name each row; where there are too many, the first of each group by its group."""
    named = rows.with_columns(
        tick=pl.Series(names, dtype=pl.String), text=pl.Series(names, dtype=pl.String)
    )
    if rows.height > ROWS_NAMED:
        is_first = pl.col("group").rle_id().diff().fill_null(1) != 0
        texts = [theme.plotly_text(name, NAME_MAX_CHARS) for name in rows["group"].to_list()]
        named = named.with_columns(text=pl.Series(texts, dtype=pl.String)).filter(is_first)
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=list(names),
        tickvals=named["tick"].to_list(),
        ticktext=named["text"].to_list(),
        range=[max(rows.height, 1) - 0.5, -0.5],
        tickfont={"size": 11},
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
    metric: Metric | None,
    bin_ms: int,
    height_ratio: float,
) -> None:
    """Add the bins; what has no bin or no value stays empty."""
    number = {key: y for y, key in enumerate(keys.to_list())}
    ms = pl.col("at").dt.epoch("ms")
    y = pl.col("key").replace_strict(number, default=None, return_dtype=pl.Int64)
    cells = bins.with_columns(x=(ms - ms.min()) // bin_ms, y=y).drop_nulls("y")
    if cells.is_empty():
        return
    first = np.datetime64(int(cells.select(ms.min()).item()), "ms")
    across = int(cells["x"].max()) + 1  # type: ignore[arg-type]
    spot = cells["y"].to_numpy(), cells["x"].to_numpy()
    values = np.full((keys.len(), across), np.nan, dtype=np.float32)
    if metric is None:
        labels = _labels(cells)
        codes = {label: float(code) for code, (label, _) in enumerate(labels)}
        values[spot] = [codes[label] for label in cells["label"].to_list()]
        texts = np.full(values.shape, "", dtype=object)
        texts[spot] = [
            f"{theme.plotly_text(label or NO_DATA)}{f', {theme.percent(share)}' * (share < FULL)}"
            for label, share in cells.select("label", "share_ratio").iter_rows()
        ]
        look: dict[str, Any] = {**_steps(labels), "showscale": False, "text": texts.tolist()}
        _legend_of(figure, labels)
    else:
        values[spot] = (cells["value"].cast(pl.Float64) * metric.scale).to_numpy()
        bar = {**_bar(metric), "len": height_ratio, "y": 1, "yanchor": "top"}
        of_values = values[~np.isnan(values)]
        ends = (of_values.min(), of_values.max()) if of_values.size else (0, 1)
        look = {**_scale(metric, *ends, prefix="z"), "colorbar": bar}
    shown = "%{text}" if metric is None else f"{metric.name}: %{{z:,.1f}} {metric.unit}"
    figure.add_heatmap(
        z=values,
        x=first + np.arange(across + 1) * np.timedelta64(bin_ms, "ms"),  # edges
        y=list(names),
        hoverongaps=False,
        hovertemplate=f"%{{y}}: {shown}<br>%{{x|%Y-%m-%d %H:%M}} UTC<extra></extra>",
        **look,
        row=1,
        col=1,
    )


def _steps(labels: Sequence[tuple[str | None, str | None]]) -> dict[str, Any]:
    """Return the colour scale of category codes: a step for each."""
    number = len(labels)
    scale = []
    for code, (_, colour) in enumerate(labels):
        paint = theme.style(colour).colour
        scale += [(code / number, paint), ((code + 1) / number, paint)]
    return {"colorscale": scale, "zmin": -0.5, "zmax": number - 0.5}


def _legend_of(figure: go.Figure, labels: Sequence[tuple[str | None, str | None]]) -> None:
    """Add what the legend shows of a heatmap's categories."""
    for label, colour in labels:
        figure.add_bar(
            x=[None],
            y=[None],
            marker={"color": theme.style(colour).colour},
            name=theme.plotly_text(label or NO_DATA),
            showlegend=True,
            row=1,
            col=1,
        )


def _links(
    figure: go.Figure, ids: pl.Series, names: Sequence[str], window: tuple[datetime, datetime]
) -> None:
    """Add a mark at the end of each row that opens it: cells of a heatmap cannot be clicked."""
    at = window[1] - LINK_RATIO * (window[1] - window[0])
    figure.add_scatter(
        x=[at] * len(names),
        y=list(names),
        mode="markers",
        marker={
            "symbol": "triangle-right",
            "size": 9,
            "color": theme.MARK_COLOUR,
            "line": {"width": 1, "color": theme.HOLDER_COLOURS[0]},
        },
        showlegend=False,
        customdata=[(one,) for one in ids.to_list()],
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
        facts = (row["run_id"], row["job_name"], row["team"], theme.count(row["gpus"], "GPU"))
        span = theme.window(row["start_at"], row["end_at"])
        hovers.append("<br>".join([*(theme.plotly_text(f) for f in facts if f), span]))
    figure.add_bar(
        y=[lane_of[run] for run in bars["run_key"].to_list()],
        x=[length.total_seconds() * 1000 for length in lengths],
        base=bars["start_at"].to_list(),
        orientation="h",
        marker={"color": [theme.HOLDER_COLOURS[n % 2] for n in turns], "line": {"width": 0}},
        name="Allocated",
        text=[
            theme.count(row["gpus"], "GPU")
            if lengths[n] > LABELLED * (window[1] - window[0])
            else ""
            for n, row in enumerate(bars.iter_rows(named=True))
        ],
        textposition="inside",
        insidetextanchor="start",
        textfont={"color": "#ffffff", "size": 11},
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
        tickfont={"size": 11},
        automargin=True,
        row=2,
    )


def _with_legend(figure: go.Figure, drawn_px: float, *, top_px: int = TOP_PX) -> go.Figure:
    """Return the figure with its legend below, and room for it."""
    labels = [str(trace.name) for trace in figure.data if trace.showlegend]
    below = BOTTOM_PX + LEGEND_ROW_PX * -(-len(labels) // LEGEND_COLUMNS)
    place = {"orientation": "h", "x": 0, "y": 0, "xanchor": "left", "yanchor": "bottom"}
    width = LEGEND_CHAR_PX * max((len(label) for label in labels), default=0)
    return figure.update_layout(
        height=top_px + drawn_px + below,
        margin={"t": top_px, "b": below},
        showlegend=bool(labels),
        legend={
            **place,
            "yref": "container",
            "traceorder": "normal",
            "font": {"size": 12},
            "entrywidth": width,
            "itemclick": False,
            "itemdoubleclick": False,
        },
    )

"""Charts of the ledger: pure functions from a frame to a Plotly figure.

They know nothing of Streamlit or the database. Traces are SVG with at most about MAX_POINTS points
in all; names from the data are escaped, since Plotly renders some HTML; units stand on the axes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.text import units

MAX_POINTS = 1_500
ROW_PX = 27
MARK_ROWS, MARK_ROW_PX = 3, 17  # names of marks that are close together stand in rows
MARKS_MAX = 48
MARK_CHAR_PX = 6.2
LEDGER_BAR_PX = 70
LABEL_FROM, HATCHED_LABEL_FROM = 0.06, 0.12  # shares of a bar that have room for theirs
HALF_PAGE_PX, PAGE_PX = 560, 726  # of a chart on a page 1440 px and one 1000 px wide
LEGEND_FONT_PX = 12
LEGEND_ROW_PX = 19
LEGEND_MARK_PX = 45  # and the space between entries
LEGEND_CHAR_PX = 5.4  # of that font: without a width Plotly sets all entries below each other
AXIS_PX = 48  # below a chart: numbers and title
LEGEND_PX = 90  # more than a chart without a legend beside it
PATTERN: dict[str, Any] = {"fillmode": "overlay", "size": 6, "solidity": 0.35, "fgcolor": "white"}
CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "png", "scale": 2, "filename": "goodput"},
}


def categories_over_time(
    frame: pl.DataFrame,
    categories: pl.DataFrame,
    bucket_ms: int,
    window: tuple[datetime, datetime],
    height: int = 340,
) -> go.Figure:
    """Return how many GPUs were in each category over time, stacked up to the capacity.

    frame: marts.ledger_over_time. categories: marts.ledger_by_category. The first and last
    bucket are as long as the window leaves them.
    """
    merged, step_ms = _rebucketed(frame, bucket_ms)
    figure = go.Figure()
    starts = merged.get_column("bucket_at").unique().sort().to_list()
    if not starts:
        return finished(figure, height=height)
    step = timedelta(milliseconds=step_ms)
    grid = [starts[0] + step * i for i in range(round((starts[-1] - starts[0]) / step) + 1)]
    stop = max(min(grid[-1] + step, window[1]), grid[-1] + timedelta(milliseconds=1))
    begin = min(max(grid[0], window[0]), grid[0] + step - timedelta(milliseconds=1))
    edges = [begin, *grid[1:], stop]
    lengths_ms = [(b - a) / timedelta(milliseconds=1) for a, b in pairwise(edges)]
    facts = {row["category"]: row for row in categories.iter_rows(named=True)}
    for category in sorted(merged.get_column("category").unique().to_list(), key=theme.rank):
        of_it = merged.filter(pl.col("category") == category)
        amounts = dict(zip(of_it["bucket_at"].to_list(), of_it["gpu_ms"].to_list(), strict=True))
        gpus = [amounts.get(at, 0) / length for at, length in zip(grid, lengths_ms, strict=True)]
        if not any(gpus):
            continue
        row = facts.get(category, {})
        label = theme.plotly_text(row.get("label", category))
        look = theme.style(row.get("colour"))
        figure.add_scatter(
            x=edges,
            y=[*gpus, gpus[-1]],
            mode="lines",
            stackgroup="gpus",
            line={"width": 0, "shape": "hv", "color": look.colour},
            fillcolor=look.colour,
            fillpattern={
                "shape": look.hatch,
                "fillmode": "overlay",
                "size": 6,
                "solidity": 0.3,
                "fgcolor": "white",
            },
            name=label,
            # the list leaves out who has no GPU: a template would put every trace on it
            hovertext=[f"{number:,.2f} GPUs" if number else "" for number in (*gpus, gpus[-1])],
            hoverinfo=["x+text+name" if number else "none" for number in (*gpus, gpus[-1])],
        )
    figure.update_layout(hovermode="x unified")
    figure.update_xaxes(title_text="UTC", range=[begin, stop])
    figure.update_yaxes(
        title_text=f"GPUs (mean over {units.duration(step_ms / 1000)})", rangemode="tozero"
    )
    return finished(figure, height=height, has_legend=True)


def marked(
    figure: go.Figure,
    marks: Sequence[tuple[datetime, str, str]],
    window: tuple[datetime, datetime],
) -> go.Figure:
    """Add lines with names above a chart over time, the latest of them.

    marks: when, what happened (its first character is a mark), and a colour. A name stands in the
    lowest row that has room for it; without any the mark stands alone above all.
    """
    pixel = (window[1] - window[0]) / PAGE_PX
    free = [window[0]] * MARK_ROWS  # from when on each row is
    lines, names = [], []
    for at, text, colour in sorted(marks)[-MARKS_MAX:]:
        row = next((n for n, end in enumerate(free) if end <= at), MARK_ROWS)
        has_room = row < MARK_ROWS
        if has_room:
            free[row] = at + pixel * MARK_CHAR_PX * (len(text) + 2)
        lines.append((at, {"color": colour, "width": 1, "dash": "dot"}))
        names.append({
            "x": at, "y": 1, "yref": "paper", "xanchor": "left", "yanchor": "bottom",
            "showarrow": False, "yshift": MARK_ROW_PX * row, "hovertext": theme.plotly_text(text),
            "text": theme.plotly_text(text if has_room else text[:1]),
            "font": {"size": LEGEND_FONT_PX},
        })  # fmt: skip
    rows = min(len(marks), MARK_ROWS + 1)
    figure.update_layout(annotations=names, margin_t=16 + MARK_ROW_PX * rows)
    return lines_at(figure, lines)


def lines_at(
    figure: go.Figure,
    lines: Sequence[tuple[datetime, Mapping[str, Any]]],
    axes: Sequence[str] = ("",),
) -> go.Figure:
    """Add vertical lines, each in all subplots: at once, since Plotly copies all for each one.

    lines: when, and how it is drawn. axes: what the names of axes end in, of each subplot
    """
    added = [
        {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "line": line,
         "xref": f"x{axis}", "yref": f"y{axis} domain"}
        for at, line in lines
        for axis in axes
    ]  # fmt: skip
    figure.layout.shapes = [*figure.layout.shapes, *added]
    return figure


def ledger_bar(frame: pl.DataFrame) -> go.Figure:
    """Return one bar: all GPU time of a run, node or GPU, part by part.

    frame: category, label, colour, gpu_ms, cost.
    """
    rows = sorted(
        (row for row in frame.iter_rows(named=True) if row["gpu_ms"] > 0),
        key=lambda row: theme.rank(row["category"]),
    )
    total_ms = sum(row["gpu_ms"] for row in rows)
    unit, divisor = units.gpu_time_unit(total_ms)
    figure = go.Figure()
    before_ms = 0
    for row in rows:
        share = row["gpu_ms"] / total_ms
        label = theme.plotly_text(row["label"])
        look, ink = theme.style(row["colour"]), theme.ink(row["colour"])
        if look.hatch and share >= HATCHED_LABEL_FROM:  # no text is read across the lines
            figure.add_annotation(
                x=(before_ms + row["gpu_ms"] / 2) / divisor, y=0, text=units.percent(share),
                showarrow=False, bgcolor=look.colour, font={"color": ink, "size": LEGEND_FONT_PX},
            )  # fmt: skip
        before_ms += row["gpu_ms"]
        figure.add_bar(
            y=["held"],
            x=[row["gpu_ms"] / divisor],
            orientation="h",
            marker=marker(row["colour"]),
            name=f"{label} {units.percent(share)}",
            text=["" if look.hatch or share < LABEL_FROM else units.percent(share)],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": ink},
            customdata=[[theme.plotly_text(units.cost(row["cost"])), units.percent(share)]],
            hovertemplate=(
                f"{label}: %{{x:,.2f}} {unit}<br>%{{customdata[1]}} of its GPU time"
                "<br>%{customdata[0]}<extra></extra>"
            ),
        )
    figure.update_layout(barmode="stack")
    figure.update_xaxes(title_text=unit)
    figure.update_yaxes(visible=False)
    drawn = finished(figure, height=LEDGER_BAR_PX, has_legend=True, width_px=PAGE_PX)
    return drawn.update_layout(height=LEDGER_BAR_PX + drawn.layout.margin.b)


def step_times(frame: pl.DataFrame) -> go.Figure:
    """Return the time of each step with its baseline, and marks where one waited or was lost.

    frame: marts.train_steps of one run, thinned to what can be drawn.
    """
    figure = go.Figure()
    ordered = frame.sort("attempt", "step")
    first = ordered["attempt"].min()
    for (attempt,), of_it in ordered.group_by("attempt", maintain_order=True):
        ends = of_it["end_at"].to_list()
        figure.add_scatter(
            x=ends,
            y=of_it["median_step_s"].to_list(),
            mode="lines",
            line={"width": 1.5, "dash": "dot", "color": theme.BASELINE_COLOUR},
            name="median of the attempt",
            legendgroup="median",
            showlegend=attempt == first,
            hovertemplate="median %{y:.3f} s<extra></extra>",
        )
        is_lost = of_it["fate"].fill_null("").str.contains("lost").to_list()
        for name, colour, wanted in (
            ("step", "free_demand", False),
            ("rolled-back step", "lost", True),
        ):
            if wanted not in is_lost:
                continue
            seconds = [
                s if lost is wanted else None
                for s, lost in zip(of_it["step_s"].to_list(), is_lost, strict=True)
            ]
            figure.add_scatter(
                x=ends,
                y=seconds,
                mode="lines",
                line={"width": 1.4, "color": theme.style(colour).colour},
                name=name,
                legendgroup=name,
                showlegend=not any(trace.name == name for trace in figure.data),
                customdata=[[step] for step in of_it["step"].to_list()],
                hovertemplate=f"{name} %{{customdata[0]}}: %{{y:.3f}} s<extra></extra>",
            )
    _add_marks(figure, ordered)
    figure.update_xaxes(title_text="UTC")
    figure.update_yaxes(title_text="step time (s)", rangemode="tozero")
    return finished(figure, height=300, has_legend=True, width_px=PAGE_PX)


def _add_marks(figure: go.Figure, steps: pl.DataFrame) -> None:
    """Mark the steps with a late rank, and those that waited for data."""
    marks: Sequence[tuple[str, str, str, pl.Expr]] = (
        ("straggler", "straggler", "diamond", pl.col("straggler_rank").is_not_null()),
        ("data stall", "data", "triangle-up", pl.col("data_s") > pl.col("step_s") * 0.5),
    )
    for name, colour, symbol, condition in marks:
        hit = steps.filter(condition)
        if hit.is_empty():
            continue
        ranks = ["" if r is None else f", rank {r}" for r in hit["straggler_rank"].to_list()]
        look = {"size": 6, "symbol": symbol, "color": theme.style(colour).colour}
        figure.add_scatter(
            x=hit["end_at"].to_list(),
            y=hit["step_s"].to_list(),
            mode="markers",
            marker={**look, "line": {"width": 0}},
            name=name,
            customdata=list(map(list, zip(hit["step"].to_list(), ranks, strict=True))),
            hovertemplate=(
                f"step %{{customdata[0]}} {name}%{{customdata[1]}}: %{{y:.3f}} s<extra></extra>"
            ),
        )


def _rebucketed(frame: pl.DataFrame, bucket_ms: int) -> tuple[pl.DataFrame, int]:
    """Return the frame in buckets wide enough that all categories can be drawn; sums stay."""
    kinds = max(1, frame.get_column("category").n_unique())
    starts = frame.get_column("bucket_at")
    if starts.is_empty():
        return frame, bucket_ms
    first, last = starts.min(), starts.max()
    assert isinstance(first, datetime)  # noqa: S101 -- a column of moments
    assert isinstance(last, datetime)  # noqa: S101
    buckets = (last - first) / timedelta(milliseconds=bucket_ms) + 2
    factor = max(1, -int(-(buckets * kinds) // MAX_POINTS))
    if factor == 1:
        return frame, bucket_ms
    step_ms = bucket_ms * factor
    merged = (
        frame.with_columns(pl.col("bucket_at").dt.truncate(f"{step_ms}ms"))
        .group_by("bucket_at", "category")
        .agg(pl.col("gpu_ms").sum())
    )
    return merged, step_ms


def marker(colour: str | None) -> dict[str, Any]:
    """Return how a bar of a colour key is filled."""
    look = theme.style(colour)
    return {
        "color": look.colour,
        "pattern": {**PATTERN, "shape": look.hatch} if look.hatch else {"shape": ""},
        "line": {"width": 0},
    }


def finished(
    figure: go.Figure, *, height: int, has_legend: bool = False, width_px: int = HALF_PAGE_PX
) -> go.Figure:
    """Return the figure with what all of ours share; a legend stands below it.

    width_px: how narrow it is at least on a screen: that decides the lines of the legend
    """
    margin = {"l": 8, "r": 12, "t": 16, "b": 8}
    if has_legend:
        names = {trace.legendgroup or trace.name: None for trace in figure.data}
        longest = max((len(str(trace.name or "")) for trace in figure.data), default=0)
        width = LEGEND_CHAR_PX * (longest + 2)  # a short name may have wide letters alone
        columns = max(1, int(width_px // (width + LEGEND_MARK_PX)))
        margin["b"] = 62 + LEGEND_ROW_PX * -(-len(names) // columns)
        place = {"orientation": "h", "x": 0, "y": 0, "xanchor": "left", "yanchor": "bottom"}
        entries = {"entrywidth": width, "font": {"size": LEGEND_FONT_PX}}
        figure.update_layout(
            showlegend=True,
            legend={
                **place,
                **entries,
                "yref": "container",
                "maxheight": margin["b"] - AXIS_PX,  # else it takes the room of a narrow chart
                "traceorder": "normal",
            },
        )
    figure.update_xaxes(separatethousands=True)
    figure.update_yaxes(separatethousands=True)
    return figure.update_layout(
        height=height, margin=margin, hoverlabel={"namelength": -1}, uirevision="keep"
    )

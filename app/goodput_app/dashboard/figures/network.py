"""Bandwidth of collectives by size against what is to be expected, and of nccl-tests over time."""

from collections.abc import Sequence

import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import finished
from goodput_app.text import units

GB = 1e9
BANDWIDTH_PX = 360
BENCHMARKS_PX = 300
LINES = (("p50_bytes_per_s", "solid", "median"), ("p1_bytes_per_s", "dot", "1st percentile"))


def bandwidth(frame: pl.DataFrame) -> go.Figure:
    """Return bus bandwidth by message size, a colour for each operation.

    frame: rows of marts.bus_bandwidth of one shape. Solid: median; dotted: what all but the slowest
    hundredth reach; dashed: what is to be expected.
    """
    figure = go.Figure()
    operations = frame["operation"].unique().sort().to_list()
    for number, operation in enumerate(operations):
        rows = frame.filter(pl.col("operation") == operation).sort("size_from_bytes")
        colour = theme.SERIES_COLOURS[number % len(theme.SERIES_COLOURS)]
        name = theme.plotly_text(operation)
        sizes = [units.size(size) for size in rows["size_from_bytes"]]
        counts = [f"{n:,} operations" for n in rows["operations"]]
        for column, dash, called in LINES:
            is_first = column == LINES[0][0]
            figure.add_scatter(
                x=rows["size_from_bytes"].to_list(),
                y=(rows[column] / GB).to_list(),
                mode="lines+markers" if is_first else "lines",
                line={"color": colour, "dash": dash, "width": 2 if is_first else 1.2},
                name=name,
                legendgroup=name,
                showlegend=is_first,
                customdata=list(zip(sizes, counts, strict=True)),
                hovertemplate=f"{name}, {called}: %{{y:,.1f}} GB/s<br>%{{customdata[0]}}, "
                "%{customdata[1]}<extra></extra>",
            )
        _draw_expected(figure, rows.drop_nulls("expected_bytes_per_s"), colour, name)
    ticks = _ticks(frame["size_from_bytes"].unique().sort().to_list())
    figure.update_xaxes(
        type="log",
        tickvals=ticks,
        ticktext=[units.size(size) for size in ticks],
        title_text="Message size (as nccl-tests counts it)",
    )
    figure.update_yaxes(rangemode="tozero", automargin=True, title_text="Bus bandwidth (GB/s)")
    figure.update_layout(showlegend=True)
    return finished(figure, height=BANDWIDTH_PX)


def _draw_expected(figure: go.Figure, rows: pl.DataFrame, colour: str, name: str) -> None:
    if rows.is_empty():
        return
    sources = [theme.plotly_text(source) for source in rows["expected_source"]]
    figure.add_scatter(
        x=rows["size_from_bytes"].to_list(),
        y=(rows["expected_bytes_per_s"] / GB).to_list(),
        mode="lines+markers",
        line={"color": colour, "dash": "dash", "width": 1.2},
        marker={"symbol": "line-ew-open", "size": 9},
        name=f"{name}, expected",
        legendgroup=name,
        showlegend=False,
        customdata=sources,
        hovertemplate=f"{name}, expected: %{{y:,.1f}} GB/s<br>%{{customdata}}<extra></extra>",
    )


def _ticks(sizes: Sequence[int]) -> list[int]:
    """Return every size where they are few, else every second one and so on."""
    every = -(-len(sizes) // 8)
    return list(sizes)[::-1][::every][::-1]


def benchmarks(frame: pl.DataFrame) -> go.Figure:
    """Return the bandwidth of runs of nccl-tests over time, a line for each shape.

    frame: rows of marts.nccl_benchmarks with `label`.
    """
    figure = go.Figure()
    for number, label in enumerate(frame["label"].unique(maintain_order=True).to_list()):
        rows = frame.filter(pl.col("label") == label).sort("run_at")
        name = theme.plotly_text(label, 80)
        figure.add_scatter(
            x=rows["run_at"].to_list(),
            y=(rows["busbw_bytes_per_s"] / GB).to_list(),
            mode="lines+markers",
            line={"color": theme.SERIES_COLOURS[number % len(theme.SERIES_COLOURS)]},
            name=name,
            hovertemplate=f"{name}: %{{y:,.1f}} GB/s<br>%{{x|%Y-%m-%d %H:%M}} UTC<extra></extra>",
        )
    figure.update_xaxes(type="date", title_text="UTC")
    figure.update_yaxes(rangemode="tozero", automargin=True, title_text="Bus bandwidth (GB/s)")
    figure.update_layout(showlegend=True)
    return finished(figure, height=BENCHMARKS_PX)

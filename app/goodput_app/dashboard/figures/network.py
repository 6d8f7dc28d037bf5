"""Bandwidth and time of collectives by size, nccl-tests over time, ports as share of line rate."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import finished
from goodput_app.dashboard.figures.telemetry import LINKS
from goodput_app.text import units

GB = 1e9
BANDWIDTH_PX, BENCHMARKS_PX, LINE_RATES_PX = 290, 230, 170  # drawn on, without the legend
PORTS_PX_MAX = 400
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
    return _with_legend(figure, BANDWIDTH_PX)


def _with_legend(figure: go.Figure, drawn_px: int) -> go.Figure:
    """Return the figure, of which so much is drawn on, with its legend below."""
    drawn = finished(figure, height=drawn_px, has_legend=True)
    return drawn.update_layout(height=drawn_px + drawn.layout.margin.b)


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


def times(points: pl.DataFrame, forecasts: pl.DataFrame) -> go.Figure:
    """Return the time of a collective by size: measured points, the fit and forecasts.

    points: rows of marts.collective_times of one shape; forecasts: of marts.collective_forecasts
    """
    figure = go.Figure()
    colours, ranks = theme.SERIES_COLOURS, points["ranks"][0]
    sizes = [units.size(size) for size in points["size_bytes"]]
    figure.add_scatter(
        x=points["size_bytes"].to_list(),
        y=(points["p50_s"] * 1e6).to_list(),
        mode="markers",
        marker={"color": colours[0], "size": 8},
        name="measured",
        customdata=list(zip(sizes, points["samples"], strict=True)),
        hovertemplate="%{customdata[0]}: %{y:,.1f} µs, median of %{customdata[1]:,}<extra></extra>",
    )
    for place, (of_ranks, rows) in enumerate(
        forecasts.group_by("forecast_ranks", maintain_order=True)
    ):
        number = int(of_ranks[0])
        name = "fit" if number == ranks else f"forecast for {number:,} ranks"
        figure.add_scatter(
            x=rows["size_bytes"].to_list(),
            y=(rows["forecast_s"] * 1e6).to_list(),
            mode="lines",
            line={"color": colours[place], "dash": "solid" if number == ranks else "dash"},
            name=name,
            hovertemplate=f"{name}: %{{y:,.1f}} µs<extra></extra>",
        )
    ticks = _ticks(points["size_bytes"].to_list())
    figure.update_xaxes(
        type="log",
        tickvals=ticks,
        ticktext=[units.size(1 << size.bit_length() - 1) for size in ticks],
        title_text="Message size (as nccl-tests counts it)",
    )
    figure.update_yaxes(type="log", dtick=1, automargin=True, title_text="Time (µs)")
    return _with_legend(figure, BENCHMARKS_PX)


def line_rates(frame: pl.DataFrame) -> go.Figure:
    """Return the share of line rate over time; frame: network.line_rates.

    Of each kind of port a line for the busiest and a dotted one for the median.
    """
    figure = go.Figure()
    for number, kind in enumerate(frame["kind"].unique().sort().to_list()):
        rows = frame.filter(pl.col("kind") == kind)
        for called, dash in (("busiest", "solid"), ("median", "dot")):
            name = f"{theme.plotly_text(LINKS.get(kind, kind))}, {called}"
            figure.add_scatter(
                x=rows["hour_at"].to_list(),
                y=(100 * rows[f"{called}_ratio"]).to_list(),
                mode="lines",
                line={"color": theme.SERIES_COLOURS[number], "dash": dash},
                name=name,
                customdata=rows["ports"].to_list(),
                hovertemplate=f"{name} of %{{customdata:,}} ports: %{{y:.1f}} %"
                "<br>%{x|%Y-%m-%d %H:%M} UTC<extra></extra>",
            )
    figure.update_xaxes(type="date", title_text="UTC")
    figure.update_yaxes(rangemode="tozero", automargin=True, title_text="Share of line rate (%)")
    return _with_legend(figure, LINE_RATES_PX)


def port_map(frame: pl.DataFrame) -> go.Figure:
    """Return a heatmap of ports by nodes; frame: network.port_map with `link`, its name."""
    has_one = frame["cluster"].n_unique() <= 1
    named = frame.with_columns(
        place=pl.col("node") if has_one else pl.format("{}: {}", "cluster", "node")
    )
    cells = named.pivot("place", index="link", values="line_rate_ratio").sort("link")
    nodes, links = cells.columns[1:], cells["link"].to_list()
    figure = go.Figure(
        go.Heatmap(
            x=[theme.plotly_text(node) for node in nodes],
            y=[theme.plotly_text(link) for link in links],
            z=100 * cells.drop("link").to_numpy().astype(np.float32),
            colorscale=theme.HEATMAP_SCALE,
            zmin=0,
            zmax=100,
            hoverongaps=False,
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": "of line rate (%)", "side": "right"}, "thickness": 12},
            hovertemplate="%{x}, %{y}: %{z:.1f} % of its line rate<extra></extra>",
        )
    )
    figure.update_xaxes(type="category", automargin=True)
    figure.update_yaxes(type="category", automargin=True, autorange="reversed")
    return finished(figure, height=150 + min(PORTS_PX_MAX, 24 * max(3, len(links))))


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
    return _with_legend(figure, BENCHMARKS_PX)

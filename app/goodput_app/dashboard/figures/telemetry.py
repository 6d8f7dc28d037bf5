"""Telemetry on one time axis: lanes of what held a GPU, small multiples of its metrics, marks.

Pure functions from frames to a Plotly figure. Frames have base units, the axes readable ones. Names
from the data are escaped.
"""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.figures.ledger import finished, lines_at, marker
from goodput_app.dashboard.figures.legend import with_legend
from goodput_app.dashboard.severities import LOOKS
from goodput_app.text import units

LANE_PX = 26
BAR_HEIGHT = 0.8  # of a lane
PANEL_PX = 92
SPACE_PX = 26
EVENTS_MARKED = 40
LANES_PX, CHAR_PX, CHARS_MIN = 700, 6.5, 5  # of lanes on a page 1400 px wide, of their texts
SHARES_PX = 62
LANES, BELOW = 1, 2  # rows: the lanes, then shares where there are any, then the panels
NO_READINGS = "No readings"
EVENTS = "Events"
HOLDER = "Allocated to"
LINKS = {"ethernet": "Ethernet", "infiniband": "InfiniBand and RoCE"}
SHARES_TITLE = "Where the GPU time went (%)"
MARKERS: dict[object, dict[str, Any]] = {
    None: {"symbol": "diamond", "size": 11, "color": theme.STYLES["fault"].colour},
    "page": {"symbol": "octagon", "size": 13, "color": LOOKS["page"].line},
    "ticket": {"symbol": "triangle-up", "size": 12, "color": LOOKS["ticket"].line},
    "note": {"symbol": "circle-open", "size": 10, "color": LOOKS["note"].line},
}
ACTIVITY = ("SM active", "Engine active", "GPU utilisation")  # the most telling one first


@dataclass(frozen=True)
class Panel:
    """One of the small multiples: its metrics share an axis in one unit."""

    title: str
    metrics: dict[str, str]  # metric -> what it is called beside others of the panel
    unit: str
    scale: float = 1.0  # from the base unit to `unit`
    is_share: bool = False
    limit: float | None = None  # in the base unit
    limit_name: str = ""
    counters: str = ""  # of DCGM, which stock exporters leave out


@dataclass(frozen=True)
class Line:
    """The series of a GPU or instance; rows: `at` and metrics, with an empty row in each hole.

    colour: of the line, else one of its own; group: the entry of the legend that it shares
    """

    name: str
    rows: pl.DataFrame
    bands: dict[str, pl.DataFrame] = field(default_factory=dict)  # metric -> at, low, high
    colour: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class Lanes:
    """Bars on top of the metrics; each frame has `lane`, `start_at`, `end_at`.

    names: the lanes from top to bottom
    holders: also `name` and `hover`; gaps, reasons: nothing more
    categories: `label`, `colour` and, where there is more to say, `hover`; where several share a
     time, `share_ratio` and `below_ratio` of the lane's height
    events: `lane`, `at`, `hover`; `severity` of findings; chosen_at: when the chosen one began
    """

    names: Sequence[str]
    holders: pl.DataFrame | None = None
    categories: pl.DataFrame | None = None
    reasons: pl.DataFrame | None = None
    gaps: pl.DataFrame | None = None
    events: pl.DataFrame | None = None
    chosen_at: datetime | None = None


@dataclass(frozen=True)
class Shares:
    """Where the time went in each bin, stacked to 100 %.

    rows: `bucket_at`, `label`, `colour`, `gpu_ms`, in the order of stacks; bin_ms: length of a bin
    """

    rows: pl.DataFrame
    bin_ms: int


@cache
def _panels() -> dict[str, list[dict[str, Any]]]:
    file = Path(__file__).parent / "telemetry.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def panels(limits: Mapping[str, Any]) -> list[Panel]:
    """Return the small multiples; limits: what telemetry.toml names, or None."""
    return [
        Panel(**{**panel, "limit": limits.get(panel.get("limit", ""))})
        for panel in _panels()["gpu"]
    ]


def host_panels() -> list[Panel]:
    """Return the small multiples of a host."""
    return [Panel(**panel) for panel in _panels()["host"]]


def is_measured(panel: Panel, lines: Sequence[Line]) -> bool:
    """Say whether any of the lines has a value of any metric of the panel."""
    return any(
        metric in line.rows.columns and line.rows[metric].null_count() < line.rows.height
        for line in lines
        for metric in panel.metrics
    )


def on_one_axis(
    lanes: Lanes,
    shown: Sequence[Panel],
    lines: Sequence[Line],
    window: tuple[datetime, datetime],
    shares: Shares | None = None,
) -> go.Figure:
    """Return the lanes and below them a panel for each group of metrics, on one time axis."""
    above = [LANE_PX * len(lanes.names) or 1, *([] if shares is None else [SHARES_PX])]
    heights = [*above, *(PANEL_PX for _ in shown)]
    titles = ["", *([] if shares is None else [SHARES_TITLE]), *(_title(panel) for panel in shown)]
    total = sum(heights) + SPACE_PX * (len(heights) - 1)
    figure = make_subplots(
        rows=len(heights),
        cols=1,
        shared_xaxes=True,
        row_heights=[height / sum(heights) for height in heights],
        vertical_spacing=SPACE_PX / total if len(heights) > 1 else 0,
        subplot_titles=titles,
    )
    figure.update_annotations(x=0, xanchor="left", font={"size": 12})
    in_shares = () if shares is None else shares.rows["label"].unique()
    _draw_lanes(figure, lanes, in_shares, window)
    if shares is not None:
        _draw_shares(figure, shares)
    first = 1 + len(above)
    for row, panel in enumerate(shown, start=first):
        _draw_panel(figure, panel, lines, row, is_first=row == first)
    figure.update_xaxes(range=list(window), type="date")
    if lanes.names:
        figure.update_xaxes(showticklabels=True, side="top", row=LANES)
    figure.update_xaxes(title_text="UTC", row=len(heights))
    figure.update_layout(barmode="overlay", bargap=1 - BAR_HEIGHT, hovermode="closest")
    if lanes.events is not None:
        _mark(figure, lanes.events)
    if lanes.chosen_at is not None:
        figure.add_vline(x=lanes.chosen_at, line=theme.CHOSEN_LINE, row="all", col=1)
    figure.update_layout(uniformtext={"minsize": 12, "mode": "hide"})
    return with_legend(finished(figure, height=total), total)


def _draw_shares(figure: go.Figure, shares: Shares) -> None:
    rows = shares.rows.with_columns(
        share=100 * pl.col("gpu_ms") / pl.col("gpu_ms").sum().over("bucket_at"),
    ).with_columns(below=pl.col("share").cum_sum().over("bucket_at") - pl.col("share"))
    for (label, colour), of_it in rows.group_by("label", "colour", maintain_order=True):
        name = theme.plotly_text(label)
        times = [units.gpu_time(ms) for ms in of_it["gpu_ms"].to_list()]
        figure.add_bar(
            x=of_it["bucket_at"].to_list(),
            y=of_it["share"].to_list(),
            base=of_it["below"].to_list(),
            width=shares.bin_ms,
            offset=0,
            marker={**marker(str(colour)), "line": {"width": 0}},
            name=name,
            showlegend=True,
            customdata=times,
            hovertemplate=f"{name} %{{y:.1f}} %, %{{customdata}}<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC"
            "<extra></extra>",
            row=BELOW,
            col=1,
        )
    figure.update_yaxes(range=[0, 100], dtick=50, automargin=True, row=BELOW)


def _draw_lanes(
    figure: go.Figure,
    lanes: Lanes,
    in_shares: Collection[str],
    window: tuple[datetime, datetime],
) -> None:
    if (holders := lanes.holders) is not None:
        _draw_holders(figure, holders, window)
    if (categories := lanes.categories) is not None:
        for label in sorted(categories["label"].unique().to_list()):
            of_it = categories.filter(pl.col("label") == label)
            name = theme.plotly_text(label)
            look = {**marker(of_it["colour"][0]), "line": {"width": 0}}
            hovers = [name] * of_it.height
            if "hover" in of_it.columns:
                hovers = of_it["hover"].to_list()
            elif "share_ratio" in of_it.columns:
                hovers = [f"{name} {100 * share:.1f} %" for share in of_it["share_ratio"].to_list()]
            _bars(figure, of_it, look, name, hovers, is_in_legend=label not in in_shares)
    look = {"color": theme.STYLES["throttled"].colour}
    if (reasons := lanes.reasons) is not None and not reasons.is_empty():
        _bars(figure, reasons, look, "Clocks reduced", reasons["lane"].to_list())
    if (gaps := lanes.gaps) is not None and not gaps.is_empty():
        _bars(figure, gaps, marker("unknown"), NO_READINGS, [NO_READINGS] * gaps.height)
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=list(lanes.names),
        range=[len(lanes.names) - 0.5, -0.5],
        automargin=True,
        row=1,
    )


def _draw_holders(
    figure: go.Figure, holders: pl.DataFrame, window: tuple[datetime, datetime]
) -> None:
    """Add bars of jobs, with as much of their names as there is room for."""
    pixel = (window[1] - window[0]) / LANES_PX
    for parity, colour in enumerate(theme.HOLDER_COLOURS):
        of_it = holders.with_row_index("nr").filter(pl.col("nr") % 2 == parity)
        names = [
            _fitting(name, (min(end, window[1]) - max(start, window[0])) / pixel)
            for name, start, end in of_it.select("name", "start_at", "end_at").iter_rows()
        ]
        hovers = of_it["hover"].to_list()
        _bars(figure, of_it, {"color": colour}, "Allocated to", hovers, text=names)


def _fitting(name: str, width_px: float) -> str:
    """Return what of a name has room in a bar: none where that would be a few characters."""
    chars = int(width_px / CHAR_PX) - 1
    return theme.plotly_text(name, chars) if chars >= min(CHARS_MIN, len(name)) else ""


def _bars(
    figure: go.Figure,
    rows: pl.DataFrame,
    look: dict[str, Any],
    name: str,
    hovers: list[str],
    *,
    text: list[str] | None = None,
    is_in_legend: bool = False,
) -> None:
    """Add bars in their lanes; hovers: escaped text, one a bar."""
    lengths = (rows["end_at"] - rows["start_at"]).dt.total_milliseconds().to_list()
    spans = [time_zone.window(*at) for at in rows.select("start_at", "end_at").iter_rows()]
    place = {}
    if "share_ratio" in rows.columns:
        place["width"] = (BAR_HEIGHT * rows["share_ratio"]).to_list()
        place["offset"] = (BAR_HEIGHT * (rows["below_ratio"] - 0.5)).to_list()
    figure.add_bar(
        **place,
        y=rows["lane"].to_list(),
        x=lengths,
        base=rows["start_at"].to_list(),
        orientation="h",
        marker=look,
        name=name,
        text=text,
        textposition="inside" if text else "none",
        insidetextanchor="start",
        textangle=0,
        textfont={"color": "#ffffff"},
        showlegend=is_in_legend,
        customdata=list(
            zip(hovers, spans, [units.duration(ms / 1000) for ms in lengths], strict=True)
        ),
        hovertemplate="%{customdata[0]}<br>%{customdata[1]}, %{customdata[2]}<extra></extra>",
        row=1,
        col=1,
    )


def _draw_panel(
    figure: go.Figure, panel: Panel, lines: Sequence[Line], row: int, *, is_first: bool
) -> None:
    colours = theme.SERIES_COLOURS
    entries: set[str] = set()  # of the legend
    for number, line in enumerate(lines):
        for place, (metric, called) in enumerate(panel.metrics.items()):
            if metric not in line.rows.columns:
                continue
            if place == 0 and metric in line.bands:
                _draw_band(figure, line.bands[metric], panel.scale, row)
            label = theme.plotly_text(" ".join(part for part in (line.name, called) if part))
            entry = theme.plotly_text(line.group or line.name)
            own = colours[(number + (place if len(lines) == 1 else 0)) % len(colours)]
            figure.add_scatter(
                x=_epoch_ms(line.rows["at"]),
                y=_scaled(line.rows[metric], panel.scale),
                mode="lines",
                line={
                    "width": 1.4,
                    "color": line.colour or own,
                    "dash": "solid" if place == 0 else "dot",
                },
                connectgaps=False,
                name=entry,
                legendgroup=entry,  # hides the line in all panels
                showlegend=is_first and place == 0 and len(lines) > 1 and entry not in entries,
                hovertemplate=f"{label}: %{{y:,.1f}} {panel.unit}<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC"
                "<extra></extra>",
                row=row,
                col=1,
            )
            entries.add(entry)
    if panel.limit is not None:
        limit = panel.limit * panel.scale
        figure.add_hline(
            y=limit, row=row, col=1, line={"dash": "dash", "width": 1, "color": theme.LIMIT_COLOUR}
        )
        title = f"{_title(panel)}, dashed: {panel.limit_name} {limit:,.0f}"
        figure.layout.annotations[row - BELOW].text = title
    if panel.is_share:
        figure.update_yaxes(range=[0, 103], dtick=50, row=row)
    figure.update_yaxes(nticks=4, automargin=True, row=row)


def _title(panel: Panel) -> str:
    """Return what stands above a panel: its unit, and what its second line is."""
    second = "".join(f", dotted: {called}" for called in list(panel.metrics.values())[1:])
    return f"{panel.title} ({panel.unit}){second}"


def _draw_band(figure: go.Figure, band: pl.DataFrame, scale: float, row: int) -> None:
    for column, fill in (("low", "none"), ("high", "tonexty")):
        figure.add_scatter(
            x=_epoch_ms(band["at"]),
            y=_scaled(band[column], scale),
            mode="lines",
            line={"width": 0, "color": theme.PEERS_COLOUR},
            fill=fill,
            fillcolor=theme.PEERS_COLOUR,
            name=f"peers, {column}",
            hoverinfo="skip",
            showlegend=False,
            row=row,
            col=1,
        )


def _epoch_ms(at: pl.Series) -> Any:
    """Return moments as numbers, which Plotly sends in binary: half the bytes of text."""
    return at.dt.epoch("ms").cast(pl.Float64).to_numpy()


def _scaled(values: pl.Series, scale: float) -> Any:
    """Return values in the axis' unit, missing ones as NaN, which breaks a line."""
    return (values.cast(pl.Float64) * scale).cast(pl.Float32).to_numpy()


def _mark(figure: go.Figure, events: pl.DataFrame) -> None:
    """Add a marker in its lane for each event, and a line through all panels for the latest."""
    if events.is_empty():
        return
    if "severity" not in events.columns:
        events = events.with_columns(severity=pl.lit(None, pl.String))
    for (severity,), of_it in events.group_by("severity", maintain_order=True):
        figure.add_scatter(
            x=of_it["at"].to_list(),
            y=of_it["lane"].to_list(),
            mode="markers",
            marker=MARKERS.get(severity, MARKERS[None]),
            customdata=of_it["hover"].to_list(),
            hovertemplate="%{customdata}<br>%{x|%Y-%m-%d %H:%M:%S} UTC<extra></extra>",
            name=EVENTS,
            showlegend=False,
            row=LANES,
            col=1,
        )
    colours = [look["color"] for look in MARKERS.values()]
    ranks = {severity: n for n, severity in enumerate(MARKERS) if severity is not None}
    worst = pl.col("severity").replace_strict(ranks, default=0, return_dtype=pl.Int64).min()
    lines = events.group_by("at").agg(rank=worst).sort("at", descending=True)
    # of each panel by itself, so that it does not strike through their titles
    axes = sorted({trace.xaxis[1:] for trace in figure.data}, key=lambda n: int(n or 1))
    look = {"dash": "dot", "width": 1}
    latest = lines.head(EVENTS_MARKED).iter_rows()
    lines_at(figure, [(at, {**look, "color": colours[rank]}) for at, rank in latest], axes)

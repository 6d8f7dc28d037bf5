"""Charts of runs side by side and of ranks: pure functions from a frame to a Plotly figure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import MAX_POINTS, PAGE_PX, ROW_PX, finished, marker
from goodput_app.text import units

RUNS_DRAWN = 15
RANK_PX, RANKS_PX_MAX, RANK_TICKS_MAX = 16, 520, 24
LOST_BY_OTHERS = " lost by other ranks"
LABEL_ROOM = 0.3  # of the time drawn: a text behind a bar


def run_ledgers(runs: pl.DataFrame, categories: pl.DataFrame) -> go.Figure:
    """Return a bar a run, the first RUNS_DRAWN in the order given: its held time by category.

    runs: marts.runs. categories: marts.run_categories.
    """
    shown = runs.head(RUNS_DRAWN)
    unit, divisor = units.gpu_time_unit(shown["held_ms"].max())  # type: ignore[arg-type]
    names = {
        key: theme.plotly_text(name, 32)
        for key, name in shown.select("run_key", "run_name").iter_rows()
    }
    parts = categories.filter(pl.col("run_key").is_in(list(names)) & (pl.col("gpu_ms") > 0))
    held = dict(shown.select("run_key", "held_ms").iter_rows())
    figure = go.Figure()
    for category in sorted(parts["category"].unique().to_list(), key=theme.rank):
        of_it = parts.filter(pl.col("category") == category)
        label = theme.plotly_text(of_it["label"][0])
        figure.add_bar(
            y=of_it["run_key"].to_list(),
            x=[ms / divisor for ms in of_it["gpu_ms"].to_list()],
            orientation="h",
            marker=marker(of_it["colour"][0]),
            name=label,
            customdata=[
                [names[key], units.percent(ms / held[key] if held[key] else None)]
                for key, ms in of_it.select("run_key", "gpu_ms").iter_rows()
            ],
            hovertemplate=(
                f"<b>%{{customdata[0]}}</b><br>{label}: %{{x:,.2f}} {unit},"
                " %{customdata[1]} of allocated<extra></extra>"
            ),
        )
    figure.update_layout(barmode="stack", bargap=0.3)
    figure.update_xaxes(title_text=f"allocated {unit}")
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=list(names),
        tickmode="array",
        tickvals=list(names),
        ticktext=list(names.values()),
        autorange="reversed",
        automargin=True,
    )
    return finished(
        figure, height=shown.height * (ROW_PX + 5) + 150, has_legend=True, width_px=PAGE_PX
    )


def straggler_lanes(frame: pl.DataFrame) -> go.Figure:
    """Return a lane a rank: when it was late and what waiting for it cost the others.

    frame: marts.stragglers of one run.
    """
    figure = go.Figure()
    rows = frame.sort("rank", "start_at").head(MAX_POINTS)
    starts, ends = rows["start_at"].to_list(), rows["end_at"].to_list()
    names = [
        theme.plotly_text(
            f"rank {r['rank']}, {r['node']} GPU {'?' if r['gpu_index'] is None else r['gpu_index']}"
        )
        for r in rows.iter_rows(named=True)
    ]
    waits = [
        units.NOT_KNOWN if w is None else f"{w:,.1f} GPU-s{LOST_BY_OTHERS}"
        for w in rows["imposed_wait_gpu_s"].to_list()
    ]
    steps = [
        f"{a}-{b}"
        for a, b in zip(rows["first_step"].to_list(), rows["last_step"].to_list(), strict=True)
    ]
    figure.add_bar(
        y=names,
        x=[(b - a) / timedelta(milliseconds=1) for a, b in zip(starts, ends, strict=True)],
        base=starts,
        orientation="h",
        marker={"color": theme.style("straggler").colour},
        text=_with_room(rows, [wait.removesuffix(LOST_BY_OTHERS) for wait in waits]),
        textposition="outside",
        cliponaxis=False,
        customdata=list(zip(steps, waits, strict=True)),
        hovertemplate="%{y}: steps %{customdata[0]}, %{customdata[1]}<extra></extra>",
        name="late",
    )
    figure.update_layout(barmode="overlay", showlegend=False)
    if starts:
        first, last = min(starts), max(ends)
        figure.update_xaxes(range=[first, last + (last - first) * 0.25 + timedelta(seconds=1)])
    figure.update_xaxes(title_text="UTC", type="date")
    figure.update_yaxes(
        automargin=True,
        categoryorder="array",
        categoryarray=sorted(set(names)),
        autorange="reversed",
    )
    return finished(figure, height=90 + 40 * max(1, len(set(names))))


def _with_room(rows: pl.DataFrame, texts: Sequence[str]) -> list[str]:
    """Return the texts behind bars, empty where the next bar of the rank would be on top of it."""
    ends, starts = (
        rows["end_at"],
        rows.select(pl.col("start_at").shift(-1).over("rank")).to_series(),
    )
    least = LABEL_ROOM * (ends.max() - rows["start_at"].min()) if rows.height else timedelta(0)  # type: ignore[operator]
    return [
        text if start is None or start - end >= least else ""
        for text, start, end in zip(texts, starts, ends, strict=True)
    ]


def lateness(frame: pl.DataFrame, window: tuple[datetime, datetime]) -> go.Figure:
    """Return a heatmap of ranks over time; frame: marts.rank_lateness of one run.

    Of two attempts in one bucket the cell has the greater lateness.
    """
    rows = frame.group_by("rank", "bucket_at").agg(percent=100 * pl.col("late_ratio").max())
    named = rows.sort("rank").select(
        "percent", at="bucket_at", name=pl.format("rank {}", pl.col("rank"))
    )
    said = "%{z:.1f} % later than the median"
    figure = _by_rank(named, window, "late (%)", said, zmax=None)
    return figure.update_traces(colorscale=theme.LATE_SCALE)


def activity(
    frame: pl.DataFrame, metric: str, title: str, window: tuple[datetime, datetime]
) -> go.Figure:
    """Return a heatmap of how active the GPU of each rank was; frame: `run_axis.activity`."""
    names = (
        pl.format("rank {}", "rank"),
        pl.format("{} GPU {}", "node", "gpu_index"),
        pl.format("{} {}", "node", "gpu_uuid"),
    )
    named = frame.select("at", percent=100 * pl.col(metric), name=pl.coalesce(names))
    return _by_rank(named, window, f"{title} (%)", f"{title} %{{z:.1f}} %", zmax=100)


def _by_rank(
    rows: pl.DataFrame,
    window: tuple[datetime, datetime],
    title: str,
    said: str,
    zmax: float | None,
) -> go.Figure:
    """Return a heatmap; rows: `name`, `at` and `percent`, in the order of its rows from above."""
    times = rows["at"].unique().sort()
    names = rows["name"].unique(maintain_order=True).to_list()
    places = {name: place for place, name in enumerate(names)}
    cells = np.full((len(names), times.len()), np.nan)
    of_rows = [places[name] for name in rows["name"].to_list()]
    cells[of_rows, times.search_sorted(rows["at"]).to_numpy()] = rows["percent"].to_numpy()
    if times.len() == 1:  # edges: a cell alone would have no width
        times = pl.Series([times.item(), max(times.item(), window[1])])
    figure = go.Figure(
        go.Heatmap(
            x=times.dt.epoch("ms").to_numpy(),
            y=[theme.plotly_text(name, 2 * theme.LABEL_MAX_CHARS) for name in names],
            z=cells.astype(np.float32),
            colorscale=theme.HEATMAP_SCALE,
            zmin=0,
            zmax=zmax,
            hoverongaps=False,
            colorbar={"title": {"text": title, "side": "right"}, "thickness": 12},
            hovertemplate=f"%{{y}}: {said}<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC<extra></extra>",
        )
    )
    figure.update_xaxes(range=list(window), type="date", title_text="UTC")
    every = -(-len(names) // RANK_TICKS_MAX)
    figure.update_yaxes(autorange="reversed", automargin=True, dtick=every, type="category")
    return finished(figure, height=90 + min(RANKS_PX_MAX, RANK_PX * max(4, len(names))))


def collectives(frame: pl.DataFrame) -> go.Figure:
    """Return a lane a rank: its collectives, a colour for each operation.

    frame: marts.collective_timeline of one run.
    """
    figure = go.Figure()
    for number, operation in enumerate(frame["operation"].unique().sort().to_list()):
        rows = frame.filter(pl.col("operation") == operation)
        name = theme.plotly_text(operation)
        sizes = [units.NOT_KNOWN if b is None else units.size(b) for b in rows["size_bytes"]]
        waits = [units.NOT_KNOWN if w is None else f"{w * 1e3:,.3f} ms" for w in rows["waited_s"]]
        figure.add_bar(
            y=[f"rank {rank}" for rank in rows["rank"].to_list()],
            x=(rows["exec_s"] * 1e3).to_list(),
            base=rows["start_at"].to_list(),
            orientation="h",
            marker={"color": theme.SERIES_COLOURS[number % len(theme.SERIES_COLOURS)]},
            customdata=list(zip(rows["sequence_number"], sizes, waits, strict=True)),
            hovertemplate=f"%{{y}}: {name} %{{customdata[0]}} of %{{customdata[1]}}, %{{x:,.3f}} ms"
            "<br>of them waiting: %{customdata[2]}<extra></extra>",
            name=name,
        )
    ranks = frame["rank"].unique().sort()
    lanes = [f"rank {rank}" for rank in ranks.to_list()]
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure.update_xaxes(title_text="UTC", type="date")
    every = -(-len(lanes) // RANK_TICKS_MAX)
    figure.update_yaxes(
        automargin=True, type="category", categoryarray=lanes, dtick=every, autorange="reversed"
    )
    height = 130 + min(RANKS_PX_MAX, 22 * max(4, len(lanes)))
    return finished(figure, height=height, has_legend=True)

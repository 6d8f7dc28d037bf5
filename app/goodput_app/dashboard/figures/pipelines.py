"""Workers and steps of a pipeline: pure functions from a frame to a Plotly figure."""

import numpy as np
import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import finished
from goodput_app.text import units

COLUMN_PX, ROWS_PX_MAX = 22, 420
KINDS = {  # label -> its operations; a send ends with its receive, so one of them is drawn
    "transfer or wait for it": ("forward-recv", "backward-recv"),
    "forward": ("forward-compute",),
    "backward": ("backward-compute",),
    "collectives": (
        *("params-all-gather", "embedding-grads-all-reduce", "grads-reduce-scatter"),
        *("layernorm-grads-all-reduce", "optimizer-clip-main-grad"),
    ),
}


def workers(frame: pl.DataFrame) -> go.Figure:
    """Return a heatmap of pipeline stages by data parallel ranks; frame: speed.pipeline_workers."""
    ranks, stages = (int(frame[name].max()) + 1 for name in ("dp_rank", "stage"))  # type: ignore[arg-type]
    at = (frame["stage"].to_numpy(), frame["dp_rank"].to_numpy())
    cells = np.full((stages, ranks), np.nan)
    cells[at] = 100 * (frame["slowdown_ratio"].to_numpy() - 1)
    said = np.full((stages, ranks), "", dtype=object)
    said[at] = [
        f"{units.gpu_time(ms)} of the run, {units.cost(cost)}"
        for ms, cost in frame.select("excess_gpu_ms", "excess_cost").iter_rows()
    ]
    figure = go.Figure(
        go.Heatmap(
            x=[str(rank) for rank in range(ranks)],
            y=[f"stage {stage}" for stage in range(stages)],
            z=cells.astype(np.float32),
            customdata=said,
            colorscale=theme.HEATMAP_SCALE,
            zmin=0,
            hoverongaps=False,
            colorbar={"title": {"text": "over ideal (%)", "side": "right"}, "thickness": 12},
            hovertemplate="%{y}, data rank %{x}: alone %{z:.1f} % over the ideal step<br>"
            "%{customdata}<extra></extra>",
        )
    )
    figure.update_xaxes(title_text="data parallel rank", type="category")
    figure.update_yaxes(autorange="reversed", automargin=True, type="category")
    return finished(figure, height=110 + min(ROWS_PX_MAX, COLUMN_PX * max(3, stages)))


def timeline(frame: pl.DataFrame) -> go.Figure:
    """Return a step's lanes: each stage as recorded and ideal; frame: marts.pipeline_timeline."""
    figure = go.Figure()
    stages = frame["stage"].unique().sort().to_list()
    lanes = [f"stage {stage} {kind}" for stage in stages for kind in ("recorded", "ideal")]
    for (label, operations), colour in zip(KINDS.items(), theme.SERIES_COLOURS, strict=False):
        of_kind = frame.filter(pl.col("operation").is_in(operations))
        bars: list[tuple[str, float, float]] = []
        for row in of_kind.iter_rows(named=True):
            for kind, start in (("recorded", "start_s"), ("ideal", "ideal_start_s")):
                end = start.replace("start", "end")
                bars.append((f"stage {row['stage']} {kind}", row[start], row[end]))
        figure.add_bar(
            y=[lane for lane, _, _ in bars],
            x=[end - start for _, start, end in bars],
            base=[start for _, start, _ in bars],
            orientation="h",
            marker={"color": colour},
            name=label,
            hovertemplate=f"%{{y}}, {label}: %{{x:.3f}} s from %{{base:.3f}} s<extra></extra>",
        )
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure.update_xaxes(title_text="seconds after the start of the step", rangemode="tozero")
    figure.update_yaxes(
        automargin=True,
        autorange="reversed",
        type="category",
        categoryorder="array",
        categoryarray=lanes,
    )
    return finished(figure, height=130 + 26 * len(lanes), has_legend=True)

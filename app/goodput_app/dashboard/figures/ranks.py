"""Ranks of a run over time: pure functions from a frame to a Plotly figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures.ledger import finished

if TYPE_CHECKING:
    from datetime import datetime

ROW_PX, ROWS_PX_MAX = 16, 520
TICKS_MAX = 24


def lateness(frame: pl.DataFrame, window: tuple[datetime, datetime]) -> go.Figure:
    """Return a heatmap of ranks over time; frame: marts.rank_lateness of one run.

    Of two attempts in one bucket the cell has the greater lateness.
    """
    rows = frame.group_by("rank", "bucket_at").agg(late_percent=100 * pl.col("late_ratio").max())
    times = rows["bucket_at"].unique().sort()
    ranks = rows["rank"].unique().sort()
    cells = np.full((ranks.len(), times.len()), np.nan)
    places = (ranks.search_sorted(rows["rank"]), times.search_sorted(rows["bucket_at"]))
    cells[places[0].to_numpy(), places[1].to_numpy()] = rows["late_percent"].to_numpy()
    figure = go.Figure(
        go.Heatmap(
            x=times.dt.epoch("ms").to_numpy(),
            y=[f"rank {rank}" for rank in ranks.to_list()],
            z=cells.astype(np.float32),
            colorscale=theme.HEATMAP_SCALE,
            zmin=0,
            hoverongaps=False,
            colorbar={"title": {"text": "late (%)", "side": "right"}, "thickness": 12},
            hovertemplate="%{y}: %{z:.1f} % later than the median<br>%{x|%Y-%m-%d %H:%M:%S} UTC"
            "<extra></extra>",
        )
    )
    figure.update_xaxes(range=list(window), type="date", title_text="UTC")
    every = -(-ranks.len() // TICKS_MAX)
    figure.update_yaxes(autorange="reversed", automargin=True, dtick=every, type="category")
    return finished(figure, height=90 + min(ROWS_PX_MAX, ROW_PX * max(4, ranks.len())))

"""Parts of the run page about data and pipeline parallelism: the ideal step beside the real one."""

from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, tables, tiles
from goodput_app.dashboard.figures import pipelines as figures
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units

WORST_SHOWN = 5
PARTS = headers("pipeline.parts")


def draw(
    replay: dict[str, Any],
    workers: pl.DataFrame,
    timeline: pl.DataFrame,
    bubbles: pl.DataFrame,
) -> None:
    """Draw a replay. replay: a row of marts.pipeline_replays; the others of data.speed."""
    columns = st.columns(1 + len(PARTS))
    with columns[0]:
        tiles.tile(
            "Step over ideal",
            f"{replay['recorded_s'] / replay['ideal_s']:.2f}",
            f"{replay['recorded_s']:.2f} s for {replay['ideal_s']:.2f} s",
        )
    excess = replay["recorded_s"] - replay["ideal_s"]
    for column, (name, label) in zip(columns[1:], PARTS.items(), strict=True):
        with column:
            share = units.percent(replay[name] / excess) if excess > 0 else units.NOT_KNOWN
            tiles.tile(label, f"{replay[name]:.2f} s", f"{share} of the difference")
    st.caption(f"Likely: {theme.markdown_text(replay['sentence'])}.")
    charts.draw(
        figures.workers(workers),
        workers,
        "pipeline-workers",
        "What each worker alone adds to the ideal step, by data parallel rank and stage",
    )
    st.caption(
        f"{replay['steps']:,} steps of {replay['data_ranks']:,} data parallel ranks in "
        f"{replay['stages']:,} stages. Workers overlap: their costs do not add up. The shares are "
        "of the trace, applied to all retained steps in the time range."
    )
    tables.show(workers.head(WORST_SHOWN), headers("pipeline.workers"), "pipeline_workers")
    if not timeline.is_empty():
        charts.draw(
            figures.timeline(timeline),
            timeline,
            "pipeline-timeline",
            "One step as recorded beside the ideal step",
        )
        st.caption(
            f"Step {timeline['step'][0]:,} of data parallel rank {timeline['dp_rank'][0]:,}: "
            "its compute ended last. A wait shows on the stage that waits, not on the slow one."
        )
        tables.show(bubbles, headers("pipeline.bubbles"), "pipeline_bubbles", rows=6)

"""Parts of the Compare page about all runs: baselines, scaling, GPU models, published results."""

import polars as pl
import streamlit as st

from goodput_app.dashboard.components import places, tables
from goodput_app.dashboard.table_columns import headers

BASELINES = headers("baseline.baselines")


def baselines(frame: pl.DataFrame) -> None:
    """Draw best and usual of each workload; a pick compares the last run with the fastest.

    frame: marts.baselines
    """
    if frame.is_empty():
        st.caption("No run in this time range has 20 steps after its warm-up.")
        return
    opens = [
        {"a": best, "b": last if last != best else None, "by": None}
        for best, last in frame.select("best_run_key", "last_run_key").rows()
    ]
    ids = pl.Series([str(place) for place in range(frame.height)])
    tables.pick(_with_unit(frame), BASELINES, "baseline", ids, rows=8, opens=opens)


def scaling(frame: pl.DataFrame) -> None:
    """Draw how workloads scale. frame: marts.scaling_efficiency."""
    places.table("baseline.scaling", _with_unit(frame))


def references(frame: pl.DataFrame) -> None:
    """Draw published times beside own ones. frame: marts.reference_results with own runs."""
    if places.table("baseline.references", frame):
        st.caption(
            f"Medians of runs in the submitters' logs ({frame['source'][0]}), not verified by "
            "MLCommons. MLPerf is a trademark of MLCommons."
        )


def _with_unit(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(unit=pl.col("speed_unit") + "/s")

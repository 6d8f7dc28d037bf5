"""Parts of the Compare page about all runs: baselines, scaling, GPU models, published results."""

from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard.components import tables
from goodput_app.dashboard.table_columns import headers

BASELINES = headers("baseline.baselines")
SCALING = headers("baseline.scaling")
SPEED_UPS = headers("baseline.speed_ups")
REFERENCES = headers("baseline.references")


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
    wide = _speeds(BASELINES)
    tables.pick(_with_unit(frame), BASELINES, "baseline", ids, rows=8, opens=opens, wide=wide)


def scaling(frame: pl.DataFrame) -> None:
    """Draw how workloads scale. frame: marts.scaling_efficiency."""
    if frame.is_empty():
        st.caption(
            "No workload that reports tokens or samples ran in two sizes on one GPU model in this "
            "time range."
        )
        return
    tables.show(_with_unit(frame), SCALING, "scaling", rows=8, wide=_speeds(SCALING))


def speed_ups(frame: pl.DataFrame) -> None:
    """Draw what a GPU model is worth against another. frame: marts.gpu_model_speed_ups."""
    if frame.is_empty():
        st.caption("No workload ran in one size on two GPU models in this time range.")
        return
    tables.show(frame, SPEED_UPS, "speed_ups", rows=8)
    st.caption("The what-if for newer GPUs on the Cost page starts from these.")


def references(frame: pl.DataFrame) -> None:
    """Draw published times beside own ones. frame: marts.reference_results with own runs."""
    if frame.is_empty():
        st.caption(
            "No job in this time range is named and sized like one of the published benchmarks; "
            "`goodput show reference_results` lists them."
        )
        return
    tables.show(frame, REFERENCES, "references", rows=8)
    st.caption(
        f"Medians of runs in the submitters' logs ({frame['source'][0]}), not verified by "
        "MLCommons. MLPerf is a trademark of MLCommons."
    )


def _speeds(names: dict[str, str]) -> dict[str, Any]:
    """Return how speeds are shown: with four digits, since steps take from 10 ms to minutes."""
    return {
        name: st.column_config.NumberColumn(header, format="%.4g")
        for name, header in names.items()
        if name.endswith("_speed")
    }


def _with_unit(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(unit=pl.col("speed_unit") + "/s")

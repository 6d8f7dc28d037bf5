"""Parts of the Energy page about what energy did: steps, caps, idle programs, heat margins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from goodput_app.dashboard.components import places, tables

if TYPE_CHECKING:
    from collections.abc import Mapping

EXECUTING = {
    "label": "Account",
    "gpu_model": "GPU model",
    "idle_ms": "Executing but idle",
    "idle_ratio": "Executing but idle (% of read)",
    "power_w": "Idle power",
    "energy_kwh": "Energy while executing but idle",
    "cluster": "Cluster",
}
RUNS = {
    "job_name": "Job",
    "run_key": "Run",
    "team": "Account",
    "user_name": "User",
    "steps": "Retained steps",
    "energy_kwh": "Energy",
    "measured_ratio": "Measured",
    "step_energy_wh": "Wh / step",
    "cluster": "Cluster",
}
CAPS = {
    "job_name": "Job",
    "gpu_model": "GPU model",
    "gpus": "GPUs",
    "power_cap_w": "Power cap",
    "work_unit": "Work",
    "work_per_kj": "Work / kJ",
    "work_per_kj_low": "p10",
    "work_per_kj_high": "p90",
    "gain_ratio": "Against the highest cap",
    "work_per_gpu_s": "Work / GPU-s",
    "power_w": "Power of a GPU",
    "hours": "Hours",
    "runs": "Runs",
    "cluster": "Cluster",
}
HEAT = {
    "rack": "Rack",
    "slowdown_margin_c": "Margin to slowdown",
    "median_margin_c": "Median margin",
    "gpu_temperature_c": "Hottest GPU",
    "hottest_node": "Node",
    "nodes": "Nodes",
    "known_nodes": "Nodes with a margin",
    "gpus": "GPUs",
    "cluster": "Cluster",
}


def executing(frame: pl.DataFrame) -> None:
    """Draw the energy of programs that were loaded and did nothing."""
    if frame.is_empty():
        st.caption("No ten minutes in which a loaded program did nothing were read.")
        return
    named = frame.with_columns(label=pl.col("team").fill_null("Account unknown"))
    tables.show(named, _of(named, EXECUTING), "executing-idle")


def runs(frame: pl.DataFrame) -> None:
    """Draw the energy of a step; a picked run has a link."""
    if frame["step_energy_wh"].null_count() == frame.height:
        st.caption(
            "No run has both: steps in its job events, and energy counters for half of its time."
        )
        return
    measured = frame.with_columns(measured_ratio=pl.col("measured_ms") / pl.col("held_ms"))
    places.pick(measured, _of(measured, RUNS), "run-energy", ("run_key",))


def caps(frame: pl.DataFrame) -> None:
    """Draw work per joule by power cap, of jobs that ran under two."""
    if frame.is_empty():
        st.caption(
            "No job of one name, model and size has whole hours of steps under two power caps. "
            "Caps are read from DCGM_FI_DEV_ENFORCED_POWER_LIMIT or by NVML."
        )
        return
    scaled = frame.with_columns(
        (pl.col(name) * 1000).alias(name.replace("_per_j", "_per_kj"))
        for name in ("work_per_j", "work_per_j_low", "work_per_j_high")
    )
    of = st.column_config.NumberColumn
    wide = {
        **{name: of(CAPS[name], format="%.4g") for name in CAPS if "_per_" in name},
        "power_cap_w": of("Power cap, W", format="%,.0f"),
    }
    tables.show(scaled, _of(scaled, CAPS), "work-by-cap", wide=wide)
    st.caption("Hours that steps fill to nine tenths, with all energy known: mean, p10 and p90.")


def heat(frame: pl.DataFrame) -> None:
    """Draw the heat margin of each rack; a picked one has links to its hottest node."""
    if frame["slowdown_margin_c"].null_count() == frame.height:
        st.caption(
            "Not configured: temperature, or slowdown temperature (DCGM_FI_DEV_SLOWDOWN_TEMP)."
        )
        return
    named = frame.with_columns(
        rack=pl.col("rack").fill_null("Rack unknown"), node=pl.col("hottest_node")
    )
    places.pick(named, _of(named, HEAT), "heat-margin", ("cluster", "rack"))


def _of(frame: pl.DataFrame, names: Mapping[str, str]) -> dict[str, str]:
    """Return the columns without the cluster, where there is one alone."""
    is_one = frame["cluster"].n_unique() <= 1
    return {name: header for name, header in names.items() if not (is_one and name == "cluster")}

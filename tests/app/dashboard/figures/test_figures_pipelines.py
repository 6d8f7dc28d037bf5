"""Figures of replayed steps: every worker has its cell, every operation its bar on two lanes."""

import numpy as np
import polars as pl

from goodput_app.dashboard.figures import pipelines


def test_a_worker_without_a_row_is_a_hole_and_the_others_say_what_they_cost():
    frame = pl.DataFrame(
        {
            "dp_rank": [0, 1, 1], "stage": [0, 0, 1], "slowdown_ratio": [1.0, 1.25, 1.5],
            "excess_gpu_ms": [0.0, 3_600_000.0, None], "excess_cost": [0.0, 2.0, None],
        }
    )  # fmt: skip

    heatmap = pipelines.workers(frame).data[0]

    assert np.round(heatmap.z, 3).tolist()[0] == [0, 25]
    assert np.isnan(heatmap.z[1][0])
    assert heatmap.customdata[0][1].startswith("1.0 GPU-h of the run")


def test_each_operation_is_drawn_as_recorded_and_ideal():
    frame = pl.DataFrame(
        {
            "stage": [0, 1], "operation": ["forward-compute", "forward-recv"],
            "start_s": [0.0, 1.0], "end_s": [1.5, 2.0],
            "ideal_start_s": [0.0, 0.5], "ideal_end_s": [1.0, 1.0],
        }
    )  # fmt: skip

    bars = {bar.name: bar for bar in pipelines.timeline(frame).data}

    assert list(bars["forward"].y) == ["stage 0 recorded", "stage 0 ideal"]
    assert list(bars["forward"].x) == [1.5, 1.0]
    assert list(bars["transfer or wait for it"].base) == [1.0, 0.5]

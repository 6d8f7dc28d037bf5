"""Figures of health: nodes by day, time between failures by job size."""

import json
from datetime import datetime, timedelta

import polars as pl

from goodput_app.dashboard.figures import health as figures

START = datetime(2026, 11, 17)  # noqa: DTZ001 -- UTC
DAYS = [START + timedelta(days=day) for day in range(3)]
COUNT = {"unit": "count"}


def days(*rows):
    """Return rows of marts.health_by_node_day: node, number of the day, value."""
    found = [
        {"cluster": "c", "node": node, "day_at": DAYS[day], "value": value}
        for node, day, value in rows
    ]
    return pl.DataFrame(found)


def cells(figure, name):
    (trace,) = [trace for trace in figure.data if trace.name == name]
    return [json.loads(cell[0]) for cell in trace.customdata or []]


def test_a_day_with_errors_one_without_and_one_that_was_not_read_look_different():
    figure = figures.node_days(days(("a", 0, 4.0), ("a", 1, 0.0)), DAYS, COUNT)

    assert cells(figure, "read") == [["c", "a", "2026-11-17"]]
    assert cells(figure, "0") == [["c", "a", "2026-11-18"]]
    assert cells(figure, "not read") == [["c", "a", "2026-11-19"]]
    *_, unread = figure.data
    assert unread.marker.pattern.shape
    assert list(unread.hovertext) == ["a, 2026-11-19: not read"]


def test_thermal_time_is_read_in_gpu_hours():
    figure = figures.node_days(days(("a", 0, 5_400.0)), DAYS, {"unit": "GPU-s"})

    assert list(figure.data[0].text) == ["1.5"]
    assert figure.layout.coloraxis.colorbar.title.text == "GPU-h"


def size(gpus, failures, **more):
    return {
        "cluster": "c", "gpus_from": gpus, "gpus_to": gpus, "attempts": 5, "gpu_ms": 3_600_000,
        "failures": failures, "mtbf_s": None, "mtbf_low_s": 3_600.0, "mtbf_high_s": None, **more,
    }  # fmt: skip


def test_time_between_failures_has_its_interval_and_no_failure_a_lower_bound_alone():
    failed = size(2, 1, mtbf_s=7_200.0, mtbf_high_s=36_000.0)

    figure = figures.reliability(pl.DataFrame([size(1, 0), failed]))

    points, bounds = figure.data
    assert (list(points.x), list(points.y)) == ([2], [2.0])
    assert (list(points.error_y.array), list(points.error_y.arrayminus)) == ([8.0], [1.0])
    assert (list(bounds.x), list(bounds.y)) == ([1], [1.0])
    assert bounds.customdata[0].startswith("1 GPU: no failure: at least 1h")

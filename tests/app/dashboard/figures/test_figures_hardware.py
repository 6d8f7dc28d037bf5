"""Figures of hardware: nodes by day, failures, bandwidth by size and over time, power."""

import json
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from tests.tables import gives

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures import health, network, power

FIRST_DAY = datetime(2026, 11, 17)  # noqa: DTZ001 -- UTC
DAYS = [FIRST_DAY + timedelta(days=day) for day in range(3)]
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
    figure = health.node_days(days(("a", 0, 4.0), ("a", 1, 0.0)), DAYS, COUNT)

    assert cells(figure, "read") == [["c", "a", "2026-11-17"]]
    assert cells(figure, "0") == [["c", "a", "2026-11-18"]]
    assert cells(figure, "not read") == [["c", "a", "2026-11-19"]]
    *_, unread = figure.data
    assert unread.marker.pattern.shape
    assert list(unread.hovertext) == ["a, 2026-11-19: not read"]


def test_thermal_time_is_read_in_gpu_hours():
    figure = health.node_days(days(("a", 0, 5_400.0)), DAYS, {"unit": "GPU-s"})

    assert list(figure.data[0].text) == ["1.5"]
    assert figure.layout.coloraxis.colorbar.title.text == "GPU-h"


def size(gpus, failures, **more):
    return {
        "cluster": "c", "gpus_from": gpus, "gpus_to": gpus, "attempts": 5, "gpu_ms": 3_600_000,
        "failures": failures, "mtbf_s": None, "mtbf_low_s": 3_600.0, "mtbf_high_s": None, **more,
    }  # fmt: skip


def test_time_between_failures_has_its_interval_and_no_failure_a_lower_bound_alone():
    failed = size(2, 1, mtbf_s=7_200.0, mtbf_high_s=36_000.0)

    figure = health.reliability(pl.DataFrame([size(1, 0), failed]))

    points, bounds = figure.data
    assert (list(points.x), list(points.y)) == ([2], [2.0])
    assert (list(points.error_y.array), list(points.error_y.arrayminus)) == ([8.0], [1.0])
    assert (list(bounds.x), list(bounds.y)) == ([1], [1.0])
    assert bounds.customdata[0].startswith("1 GPU: no failure: at least 1h")


MIB = 2**20
HOSTILE = "<b>x</b> %{y}"


def shape(**columns):
    usual = {
        "operation": ["AllReduce", "AllReduce", HOSTILE], "size_from_bytes": [MIB, 256 * MIB, MIB],
        "p50_bytes_per_s": [40e9, 400e9, 20e9], "p1_bytes_per_s": [30e9, 100e9, 10e9],
        "expected_bytes_per_s": [None, 430e9, None], "expected_source": [None, "3 runs <i>", None],
        "operations": [1000, 5, 7],
    }  # fmt: skip
    return pl.DataFrame({**usual, **columns})


def test_each_operation_has_median_and_slowest_and_expected_where_it_is_known():
    figure = network.bandwidth(shape())

    found = [(trace.name, trace.line.dash, list(trace.y)) for trace in figure.data]
    hostile = theme.plotly_text(HOSTILE)
    assert found == [
        (hostile, "solid", [20.0]),
        (hostile, "dot", [10.0]),
        ("AllReduce", "solid", [40.0, 400.0]),
        ("AllReduce", "dot", pytest.approx([30.0, 100.0])),
        ("AllReduce, expected", "dash", [430.0]),
    ]
    assert "<b>" not in hostile


def test_runs_of_one_shape_are_one_line_over_time():
    at = [datetime(2026, 11, day) for day in (3, 1, 2)]  # noqa: DTZ001 -- UTC
    rows = pl.DataFrame(
        {"label": ["a", "a", HOSTILE], "run_at": at, "busbw_bytes_per_s": [3e9, 1e9, 2e9]}
    )

    figure = network.benchmarks(rows)

    assert [list(trace.y) for trace in figure.data] == [[1.0, 3.0], [2.0]]
    assert figure.data[1].name == theme.plotly_text(HOSTILE, 80)


START = datetime(2027, 1, 15, 8, tzinfo=UTC).replace(tzinfo=None)
BUCKET_MS = 600_000
WINDOW = START, START + timedelta(minutes=20)


def frame(*rows):
    """Return rows of marts.power_over_time: name, availability, bucket, power."""
    return pl.DataFrame(
        [{"cluster": "c", "name": name, "availability": availability, "power_w": watts,
          "at": START + timedelta(milliseconds=BUCKET_MS * bucket), "here_ms": 600_000.0,
          "read_ms": 0.0 if watts is None else 600_000.0}
         for name, availability, bucket, watts in rows],
        schema_overrides={"availability": pl.String, "name": pl.String, "power_w": pl.Float64},
    )  # fmt: skip


def bars(*rows):
    figure = power.over_time(frame(*rows), BUCKET_MS, WINDOW, "Rack unknown")
    return {trace.name: list(trace.y) for trace in figure.data if trace.type == "bar"}


# the most power at the bottom, what is not allocated on top
test_names_stand_in_their_order = gives(
    lambda *rows: list(bars(*rows)),
    (("small", None, 0, 100.0), ("big", None, 0, 400.0), ["big", "small"]),
    ((None, "free", 0, 900.0), ("team", "held", 0, 100.0), ["team", "Not allocated"]),
    ((None, None, 0, 100.0), ["Rack unknown"]),
)


def test_a_bucket_without_a_reading_has_no_bar_and_no_coverage():
    rows = frame(("a", None, 0, 100.0), ("a", None, 1, None))

    figure = power.over_time(rows, BUCKET_MS, WINDOW, "?")

    bar, coverage = figure.data
    assert list(bar.y) == [100.0]
    assert list(coverage.y) == [100.0, 0.0, 0.0]


def test_of_many_names_the_smaller_ones_are_added_up():
    found = bars(*((f"n{i:02}", None, 0, 100.0 - i) for i in range(20)))

    assert list(found)[-1] == "12 more"
    assert sum(values[0] for values in found.values()) == pytest.approx(
        sum(100 - i for i in range(20))
    )


def test_a_name_like_a_label_of_ours_is_a_name():
    rows = frame(("Not allocated", "held", 0, 100.0), (None, "free", 0, 50.0))

    drawn = power.over_time(rows, BUCKET_MS, WINDOW, "?").data[:2]

    assert [(trace.name, list(trace.y)) for trace in drawn] == [
        ("Not allocated", [100.0]), ("Not allocated", [50.0])
    ]  # fmt: skip

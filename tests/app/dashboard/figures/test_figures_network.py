"""Figures of the network: bandwidth by size against what is expected, benchmarks over time."""

from datetime import datetime

import polars as pl
import pytest

from goodput_app.dashboard import theme
from goodput_app.dashboard.figures import network as figures

MIB = 2**20
HOSTILE = "<b>x</b> %{y}"


def shape(**columns):
    usual = {
        "operation": ["AllReduce", "AllReduce", HOSTILE],
        "size_from_bytes": [MIB, 256 * MIB, MIB],
        "p50_bytes_per_s": [40e9, 400e9, 20e9],
        "p1_bytes_per_s": [30e9, 100e9, 10e9],
        "expected_bytes_per_s": [None, 430e9, None],
        "expected_source": [None, "3 runs <i>", None],
        "operations": [1000, 5, 7],
    }
    return pl.DataFrame({**usual, **columns})


def test_each_operation_has_median_and_slowest_and_expected_where_it_is_known():
    figure = figures.bandwidth(shape())

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

    figure = figures.benchmarks(rows)

    assert [list(trace.y) for trace in figure.data] == [[1.0, 3.0], [2.0]]
    assert figure.data[1].name == theme.plotly_text(HOSTILE, 80)

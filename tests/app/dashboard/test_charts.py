"""Charts of pages: what dragging over a time axis asks for."""

from __future__ import annotations

from datetime import datetime, timedelta

from goodput_app.dashboard.components import charts

HOUR = timedelta(hours=1)


def test_a_marked_range_is_turned_back_to_utc() -> None:
    boxes = [{"x": ["2026-11-20 13:30:00.25", "2026-11-20 13:00"], "y": [0, 1]}]
    assert charts.marked_range(boxes, HOUR) == (
        datetime(2026, 11, 20, 12),  # noqa: DTZ001 -- naive UTC
        datetime(2026, 11, 20, 12, 30, 0, 250_000),  # noqa: DTZ001
    )


def test_a_click_marks_no_range() -> None:
    assert charts.marked_range([], HOUR) is None
    assert charts.marked_range([{"x": ["2026-11-20", "2026-11-20"]}], HOUR) is None

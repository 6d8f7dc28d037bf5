"""Charts of pages: what dragging over a time axis asks for."""

from datetime import datetime, timedelta

import plotly.graph_objects as go

from goodput_app.dashboard.components import charts
from goodput_app.text import glossary

HOUR = timedelta(hours=1)


def test_a_marked_range_is_turned_back_to_utc():
    boxes = [{"x": ["2026-11-20 13:30:00.25", "2026-11-20 13:00"], "y": [0, 1]}]
    assert charts.marked_range(boxes, HOUR) == (
        datetime(2026, 11, 20, 12),  # noqa: DTZ001 -- naive UTC
        datetime(2026, 11, 20, 12, 30, 0, 250_000),  # noqa: DTZ001
    )


def test_a_click_marks_no_range():
    assert charts.marked_range([], HOUR) is None
    assert charts.marked_range([{"x": ["2026-11-20", "2026-11-20"]}], HOUR) is None


def test_a_legend_is_explained_by_the_glossary_and_the_categories():
    names = ("Lost work 3.7 %", "Idle, no demand (4)", "Slowdowns", "node-7")
    figure = go.Figure([go.Bar(x=[1], y=["a"], name=name) for name in names])
    found = charts.definitions(figure)
    assert list(found) == ["Lost work", "Idle, no demand", "Slowdowns"]
    assert found["Lost work"] == glossary.meaning("Lost work")
    assert found["Slowdowns"] == glossary.meaning("Slowdowns")
    assert charts.definitions(figure.update_layout(showlegend=False)) == {}

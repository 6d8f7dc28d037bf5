"""Figures of telemetry: lanes and small multiples on one time axis."""

import math
from datetime import datetime, timedelta

import polars as pl
import pytest

from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.figures import telemetry as figures
from goodput_app.dashboard.severities import LOOKS

START = datetime(2026, 11, 20)  # noqa: DTZ001 -- UTC
WINDOW = (START, START + timedelta(hours=1))


def minutes(*values):
    return [START + timedelta(minutes=value) for value in values]


def bars(**columns):
    times = {"start_at": minutes(0), "end_at": minutes(30)}
    return pl.DataFrame({"lane": ["Category"], **times, **columns})


def line(**metrics):
    return figures.Line("this GPU", pl.DataFrame({"at": minutes(0, 10, 20), **metrics}))


def drawn(found, limits=None, lanes=None):
    """Return the figure of the panels that are measured by these lines, and the panels."""
    shown = [panel for panel in figures.panels(limits or {}) if figures.is_measured(panel, found)]
    return figures.on_one_axis(lanes or figures.Lanes(["x"]), shown, found, WINDOW), shown


def test_a_hole_is_not_bridged_units_are_readable_and_a_limit_is_drawn():
    figure, _ = drawn([line(sm_clock_hz=[1.98e9, None, 345e6])])

    (trace,) = figure.data
    first, hole, last = trace.y
    assert (first, last) == (1980.0, 345.0)
    assert math.isnan(hole)
    assert trace.x[1] - trace.x[0] == 600_000
    assert trace.connectgaps is False
    assert figure.layout.annotations[0].text == "SM clock (MHz)"

    limits = {"power_limit_w": 700.0, "slowdown_temperature_c": None}
    figure, _ = drawn([line(power_w=[1.0, 2.0, 3.0])], limits)
    assert figure.layout.annotations[0].text == "Power (W), dashed: power limit 700"
    assert [shape.y0 for shape in figure.layout.shapes] == [700.0]


def test_an_event_has_a_mark_and_a_line_in_each_panel_that_spares_its_title():
    events = pl.DataFrame({
        "event_at": minutes(5), "kind": ["xid"], "code": [79], "meaning": ["<b>x</b> $a$ %{y}"],
        "ts_precision": ["approximate"],
    })  # fmt: skip

    marks = parts.marks(events, pl.lit(figures.EVENTS))
    lanes = figures.Lanes([figures.EVENTS], events=marks)
    figure, _ = drawn([line(sm_clock_hz=[1.98e9, None, 345e6])], lanes=lanes)

    assert marks["hover"][0].startswith("Xid 79 (time approximate)<br>")
    assert "<b>" not in marks["hover"][0]
    shapes = figure.layout.shapes
    assert [shape.yref for shape in shapes] == ["y domain", "y2 domain"]
    assert {shape.x0 for shape in shapes} == {START + timedelta(minutes=5)}
    both = pl.concat([marks.with_columns(severity=pl.lit(one)) for one in ("note", "ticket")])
    rated, _ = drawn([line(power_w=[1.0] * 3)], lanes=figures.Lanes([figures.EVENTS], events=both))
    assert {shape.line.color for shape in rated.layout.shapes} == {LOOKS["ticket"].line}


def test_a_known_state_is_drawn_whole_above_missing_readings():
    down = bars(lane=["State"], label=["Down"], colour=["failed"], hover=["Down"])
    gaps = bars(lane=[figures.NO_READINGS])
    lanes = figures.Lanes(["State", figures.NO_READINGS], categories=down, gaps=gaps)

    figure, _ = drawn([line(power_w=[1.0, None, None])], lanes=lanes)

    drawn_bars = [(bar.name, bar.y, bar.x) for bar in figure.data if bar.type == "bar"]
    assert drawn_bars == [
        ("Down", ("State",), (1_800_000,)),
        (figures.NO_READINGS, (figures.NO_READINGS,), (1_800_000,)),
    ]
    assert figure.layout.yaxis.categoryarray == ("State", figures.NO_READINGS)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first is the top


def test_categories_of_one_time_share_the_height_of_their_lane():
    idle = bars(label=["Idle"], colour=["idle_no_demand"], share_ratio=[0.25], below_ratio=[0.0])
    rest = bars(label=["Unknown"], colour=["unknown"], share_ratio=[0.75], below_ratio=[0.25])
    lanes = figures.Lanes(["Category"], categories=pl.concat([idle, rest]))

    figure, _ = drawn([line(power_w=[1.0, None, None])], lanes=lanes)

    first, second = (bar for bar in figure.data if bar.type == "bar")
    assert (first.customdata[0][0], second.customdata[0][0]) == ("Idle 25.0 %", "Unknown 75.0 %")
    assert first.offset[0] == -figures.BAR_HEIGHT / 2
    assert first.offset[0] + first.width[0] == pytest.approx(second.offset[0])
    assert second.offset[0] + second.width[0] == pytest.approx(figures.BAR_HEIGHT / 2)


def test_reasons_of_bins_that_follow_each_other_are_one_bar():
    series = pl.DataFrame({
        "at": minutes(0, 10, 20, 40), **{name: [None] * 4 for name in parts.REASONS},
        "power_cap": [0.5, 1.0, 0.0, 0.2],
    }, schema_overrides=dict.fromkeys(parts.REASONS, pl.Float32))  # fmt: skip

    found = parts.reasons(series, 600_000)

    assert found["lane"].to_list() == ["Power cap", "Power cap"]
    assert found["start_at"].to_list() == minutes(0, 40)
    assert found["end_at"].to_list() == minutes(20, 50)


def test_what_instances_repeat_is_drawn_once():
    series = pl.DataFrame({
        "gpu_uuid": ["GPU-a"] * 4, "gpu_instance": ["1", "1", "2", "2"],
        "at": [*minutes(0, 10), *minutes(0, 10)],
        "power_w": [300.0] * 4, "sm_active_ratio": [0.1, 0.2, 0.3, 0.4],
    })  # fmt: skip
    names = {("GPU-a", "1"): "instance 1", ("GPU-a", "2"): "instance 2"}

    first, second = parts.lines(series, names, ["power_w", "sm_active_ratio"])

    assert "power_w" in first.rows.columns
    assert "power_w" not in second.rows.columns
    assert second.rows["sm_active_ratio"].to_list() == [0.3, 0.4]

"""Times on the clock of a zone: texts, tables, charts, and days on which the clock changes."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest

from goodput_app.dashboard import time_zone
from goodput_app.dashboard.components import tables
from goodput_app.dashboard.figures.shown import in_zone
from goodput_app.time_expressions import moment_ms

BERLIN = "Europe/Berlin"
AUTUMN = datetime(2026, 10, 25)  # noqa: DTZ001 -- UTC; the clock of Berlin goes back at 01:00
SPRING = datetime(2026, 3, 29)  # noqa: DTZ001 -- and forward at 01:00
NOON = datetime(2026, 11, 20, 12)  # noqa: DTZ001


@pytest.fixture
def in_berlin(monkeypatch):
    monkeypatch.setattr(time_zone, "name", lambda: BERLIN)


@pytest.mark.usefixtures("in_berlin")
def test_a_moment_names_its_offset():
    assert time_zone.moment(NOON) == "2026-11-20 13:00:00 UTC+01:00"
    assert time_zone.moment(NOON.replace(tzinfo=UTC)) == time_zone.moment(NOON)


@pytest.mark.usefixtures("in_berlin")
def test_the_hour_that_comes_twice_can_be_distinguished():
    early, late = AUTUMN + timedelta(minutes=30), AUTUMN + timedelta(minutes=90)
    assert (
        time_zone.window(early, late) == "2026-10-25 02:30 UTC+02:00 - 2026-10-25 02:30 UTC+01:00"
    )
    assert time_zone.hours([AUTUMN, AUTUMN + timedelta(hours=1), AUTUMN + timedelta(hours=2)]) == [
        "10-25 02:00 UTC+02:00", "10-25 02:00 UTC+01:00", "10-25 03:00",
    ]  # fmt: skip


@pytest.mark.parametrize(("day", "hours"), [(AUTUMN, 25), (SPRING, 23), (NOON, 24)])
def test_a_day_of_the_zone_is_as_long_as_its_clock_makes_it(day, hours):
    now, zone = day.replace(hour=12, tzinfo=UTC), ZoneInfo(BERLIN)
    start, end = (moment_ms("now/d", now, is_end=e, zone=zone) for e in (False, True))
    assert (end - start) / 3_600_000 == hours


def test_steps_in_hours_elapse_and_steps_in_days_follow_the_clock():
    now, zone = datetime(2026, 10, 25, 12, tzinfo=UTC), ZoneInfo(BERLIN)
    at = {
        text: moment_ms(text, now, zone=zone) / 3_600_000 for text in ("now", "now-24h", "now-1d")
    }
    assert at["now"] - at["now-24h"] == 24
    assert at["now"] - at["now-1d"] == 25


@pytest.mark.usefixtures("in_berlin")
def test_a_column_of_times_stays_utc_and_is_shown_in_the_zone():
    frame = pl.DataFrame(
        {"start_at": [NOON, None], "end_at": [AUTUMN, AUTUMN + timedelta(hours=2)]}
    )
    shown, config = tables.shaped(frame, {"start_at": "Start", "end_at": "End"})
    assert shown.schema["start_at"] == pl.Datetime("us", "UTC")
    assert shown["start_at"][0] == NOON.replace(tzinfo=UTC)
    assert config["start_at"]["label"] == "Start (Europe/Berlin)"
    assert config["start_at"]["type_config"]["timezone"] == BERLIN
    assert config["start_at"]["type_config"]["format"] == "YYYY-MM-DD HH:mm:ss"
    assert config["end_at"]["type_config"]["format"] == "YYYY-MM-DD HH:mm:ss Z"


def figure(end):
    """Give three hours that end then, as our figures have them: dates, epochs, bars, marks."""
    start = end - timedelta(hours=3)
    drawn = go.Figure()
    drawn.add_scatter(x=[start, end], y=[1, 2], hovertemplate="%{x|%H:%M:%S} UTC<extra></extra>")
    drawn.add_scatter(x=np.array([start.timestamp() * 1000]), y=[1])
    drawn.add_bar(base=[start], x=[5_000.0], y=["lane"], orientation="h")
    drawn.add_heatmap(x=np.array([start], dtype="datetime64[ms]"), y=["row"], z=[[1]])
    drawn.add_vline(x=start)
    return drawn.update_xaxes(range=[start, end], type="date", title_text="UTC")


def test_a_figure_is_drawn_on_the_clock_of_the_zone():
    start, hour = NOON - timedelta(hours=3), timedelta(hours=1)
    shown = in_zone(figure(NOON), BERLIN)
    line, epochs, bar, heatmap = shown.data
    assert list(line.x) == [start + hour, NOON + hour]
    assert line.hovertemplate == "%{x|%H:%M:%S} UTC+01:00<extra></extra>"
    assert epochs.x[0] == (start + hour).timestamp() * 1000
    assert (bar.base[0], bar.x[0]) == (start + hour, 5_000.0)
    assert heatmap.x[0] == np.datetime64(start + hour)
    assert shown.layout.shapes[0].x0 == start + hour
    assert tuple(shown.layout.xaxis.range) == (start + hour, NOON + hour)
    assert shown.layout.xaxis.title.text == "Europe/Berlin (UTC+01:00)"


def test_a_figure_in_which_the_clock_changes_keeps_one_offset_and_says_so():
    end = AUTUMN + timedelta(hours=2)
    shown = in_zone(figure(end), BERLIN)
    assert tuple(shown.layout.xaxis.range) == (end - timedelta(hours=2), end + timedelta(hours=1))
    assert shown.layout.xaxis.title.text == (
        "Europe/Berlin, all at UTC+01:00: its clock changed in this range"
    )

"""The tiles of the Overview: what they show, and what changed since the window before."""

from datetime import UTC, datetime

import polars as pl
import pytest
from tests.recorded_session import built, extent_ms

from goodput_app.dashboard.components import tiles
from goodput_queries.scope import Scope


@pytest.fixture(scope="module")
def capture(empty_database, tmp_path_factory):
    """Give the recorded session as scheduler, telemetry and jobs tell it."""
    parts = "sacct.txt", "nvml.jsonl.gz", "job_events.jsonl.gz"
    yield from built(empty_database, tmp_path_factory, *parts)


def visited(visit, store, from_ms, to_ms):
    """Return the changes that the Overview shows, by tile, and all its captions."""
    start, end = (
        datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
        for ms in (from_ms, to_ms)
    )
    app = visit(store, **{"from": start, "to": end})
    assert not app.exception
    changes = {metric.label: str(metric.delta) for metric in app.metric if metric.delta}
    return changes, "\n".join(str(caption.value) for caption in app.caption)


def test_tiles_say_what_changed_since_the_window_before(capture, visit):
    first, last = extent_ms(capture)
    length = (last - first) // 2

    changes, captions = visited(visit, capture, last - length, last)

    now, then = (
        capture.read("select * from marts.goodput_summary", scope=Scope(from_ms=a, to_ms=b)).row(
            0, named=True
        )
        for a, b in ((last - length, last), (last - 2 * length, last - length))
    )
    points = 100 * (now["goodput_ratio"] - then["goodput_ratio"])
    assert float(changes["Goodput (% of capacity)"].removesuffix(" pts")) == pytest.approx(
        points, abs=0.051
    )
    assert changes["Capacity"] == "0.0 %"
    assert "Wasted" not in changes  # nothing has a price
    assert "Changes: against 20" in captions


def test_tiles_tell_no_change_where_the_window_before_is_not_known(capture, visit):
    first, last = extent_ms(capture)

    changes, captions = visited(visit, capture, first + 10_000, last)

    assert changes == {}
    assert "Changes" not in captions


def test_a_line_that_hardly_changes_is_drawn_flat():
    over_time = pl.DataFrame({"capacity_ms": [520_000, 519_900, 520_000, 400_000]})
    drawn = tiles._line(over_time, "capacity_ms")
    assert drawn == pytest.approx([520_000, 520_000, 520_000, 400_400])

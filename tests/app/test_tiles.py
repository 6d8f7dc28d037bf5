"""The tiles of the Overview: what they show, and what changed since the window before."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tests.recorded_session import built, extent_ms

from goodput_app.components import tiles
from goodput_queries.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

    from goodput_queries.store import LocalStore


@pytest.fixture(scope="module")
def capture(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """Give the recorded session as scheduler, telemetry and jobs tell it."""
    parts = "sacct.txt", "nvml.jsonl.gz", "job_events.jsonl.gz"
    yield from built(empty_database, tmp_path_factory, *parts)


def visited(
    visit: Callable[..., AppTest], store: LocalStore, from_ms: int, to_ms: int
) -> tuple[dict[str, str], str]:
    """Return the changes that the Overview shows, by tile, and all its captions."""
    start, end = (
        datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
        for ms in (from_ms, to_ms)
    )
    app = visit(store, **{"from": start, "to": end})
    assert not app.exception
    changes = {metric.label: str(metric.delta) for metric in app.metric if metric.delta}
    return changes, "\n".join(str(caption.value) for caption in app.caption)


def test_the_headline_is_an_interval_where_the_bounds_are_wide() -> None:
    row = {
        "goodput_ratio": 0.32,
        "goodput_lo_ratio": 0.0,
        "goodput_hi_ratio": 0.333,
        "step_unsplit_ms": 1,
        "is_interval_wide": True,
    }
    assert tiles.headline(row) == ("0.0 - 33.3 %", "32.0 % kept steps; communication not separated")
    narrow = {**row, "goodput_lo_ratio": 0.3, "step_unsplit_ms": 0, "is_interval_wide": False}
    assert tiles.headline(narrow) == ("32.0 %", "bounds 30.0 - 33.3 %")


def test_tiles_say_what_changed_since_the_window_before(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
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
    assert float(changes["Goodput (of capacity)"].removesuffix(" pts")) == pytest.approx(
        points, abs=0.051
    )
    assert changes["Capacity"] == "0.0 %"
    assert "Wasted" not in changes  # nothing has a price
    assert "Changes: against 20" in captions


def test_tiles_tell_no_change_where_the_window_before_is_not_known(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    first, last = extent_ms(capture)

    changes, captions = visited(visit, capture, first + 10_000, last)

    assert changes == {}
    assert "Changes" not in captions


@pytest.mark.parametrize(
    ("unsettled_ms", "hi", "shown"),
    [(0, 0.5, "50.0 %"), (30, 0.8, "50.0 - 80.0 %"), (100, 1.5, "not known")],
)
def test_goodput_of_a_run_is_as_sharp_as_its_evidence(
    unsettled_ms: int, hi: float, shown: str
) -> None:
    run = {"goodput_of_held_ratio": 0.5, "held_ms": 100, "unsettled_ms": unsettled_ms}
    bounds = {"runtime_lo_ratio": 0.5, "runtime_hi_ratio": hi}
    assert tiles.goodput_of_held({**run, **bounds}) == shown

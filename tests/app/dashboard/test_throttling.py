"""No episode of throttling: nothing was throttled, or no source reports it."""

from __future__ import annotations

import polars as pl
import pytest

from goodput_app.dashboard.throttling import empty_meaning


@pytest.mark.parametrize(
    ("readings", "reasons", "counters", "beginning"),
    [
        (True, True, False, "No GPU was throttled."),
        (True, False, True, "No GPU was throttled."),
        (False, False, False, "Throttling is not known: no reading"),
        (True, False, False, "Throttling is not known: these readings carry neither"),
    ],
)
def test_an_empty_list_says_whether_any_source_could_have_reported(
    readings, reasons, counters, beginning
):
    sources = pl.DataFrame(
        {"has_readings": [readings], "has_reasons": [reasons], "has_counters": [counters]}
    )

    assert empty_meaning(sources).startswith(beginning)

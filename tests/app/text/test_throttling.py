"""No episode of throttling: nothing was throttled, or no source reports it."""

import polars as pl
import pytest

from goodput_app.text.throttling import empty_meaning, recurrence


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


@pytest.mark.parametrize(
    ("known", "margin", "expected"),
    [
        ("chronic", 6.0, "hw_thermal chronic (3 of 12 h read). Margin to the slowdown "
                         "temperature: 6 °C."),
        (None, None, "hw_thermal in too few hours to call it chronic or passing (3 of 12 h read). "
                     "Margin to the slowdown temperature: unknown."),
    ],
)  # fmt: skip
def test_a_sentence_says_whether_throttling_is_chronic_and_what_is_not_known(
    known, margin, expected
):
    row = {"reason": "hw_thermal", "recurrence": known, "throttled_hours": 3, "read_hours": 12}
    found = pl.DataFrame([{**row, "slowdown_margin_c": margin}])

    assert recurrence(found) == expected
    assert recurrence(found.clear()) == ""

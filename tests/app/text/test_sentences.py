"""Findings in sentences: their subject, confidence, and whether throttling is known."""

import polars as pl
import pytest

from goodput_app.text.confidence import hit_rates, with_hit_rate
from goodput_app.text.sentences import sentence
from goodput_app.text.throttling import empty_meaning, recurrence


@pytest.mark.parametrize(
    ("title", "subject", "said"),
    [
        ("A node is drained", "hgx-3", "hgx-3 is drained"),
        ("A node's link is slow", "vm", "vm's link is slow"),
        ("A GPU has vanished", "vm, GPU 3", "vm, GPU 3 has vanished"),
        ("A network link was lost", "vm", "vm: a network link was lost"),
        ("GPUs are free while jobs wait", "atlas", "atlas: GPUs are free while jobs wait"),
        ("ECC is off", "vm, GPU 3", "vm, GPU 3: ECC is off"),
        ("A node is down", r"n\1", r"n\1 is down"),
        ("The ledger is not up to date", "", "The ledger is not up to date"),
    ],
)
def test_a_sentence_names_its_subject(title, subject, said):
    assert sentence(title, subject) == said


FINDING = {"confidence": "Likely", "right_count": None, "total_count": None}
NOBODY = {"accepted": None, "dismissed": None}


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (NOBODY, "Likely; not measured in tests"),
        ({"right_count": 58, "total_count": 60, **NOBODY},
         "Likely; 58 of 60 such findings were right in tests"),
        ({"accepted": 3, "dismissed": 1},
         "Likely; not measured in tests; people acknowledged 3 of this rule and dismissed 1"),
    ],
)  # fmt: skip
def test_a_finding_says_how_often_such_ones_were_right(known, text):
    assert with_hit_rate(FINDING | known) == text


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({}, "not measured in tests"),
        ({"": (19, 20), "Confirmed": (1_058, 1_060)},
         "Confirmed right in 1,058 of 1,060; 19 of 20 cases found"),
    ],
)  # fmt: skip
def test_a_rule_says_what_tests_found(counts, text):
    assert hit_rates(counts) == text


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

"""What tests and people say of the confidence of a finding, as text."""

import pytest

from goodput_app.text.confidence import hit_rates, with_hit_rate

FINDING = {"confidence": "Likely", "right_count": None, "total_count": None}
NOBODY = {"accepted": None, "dismissed": None}


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (NOBODY, "Likely; not measured in tests"),
        (
            {"right_count": 58, "total_count": 60, **NOBODY},
            "Likely; 58 of 60 such findings were right in tests",
        ),
        (
            {"accepted": 3, "dismissed": 1},
            "Likely; not measured in tests; people acknowledged 3 of this rule and dismissed 1",
        ),
    ],
)
def test_a_finding_says_how_often_such_ones_were_right(known, text):
    assert with_hit_rate(FINDING | known) == text


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({}, "not measured in tests"),
        (
            {"": (19, 20), "Confirmed": (1_058, 1_060)},
            "Confirmed right in 1,058 of 1,060; 19 of 20 cases found",
        ),
    ],
)
def test_a_rule_says_what_tests_found(counts, text):
    assert hit_rates(counts) == text

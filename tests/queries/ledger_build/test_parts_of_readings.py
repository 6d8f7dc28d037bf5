"""The readings of a build are looked at in parts of a worthwhile size."""

import pytest

from goodput_queries.ledger_build.passes import READINGS_OF_A_PART, borders_of_parts

SIZE = READINGS_OF_A_PART


@pytest.mark.parametrize(
    ("first", "last", "most", "borders"),
    [
        (7, 7 + 2 * SIZE - 1, 8, [7, 7 + 2 * SIZE - 1]),
        (0, 0, 8, [0, 0]),
        (7, 7 + 3 * SIZE, 8, [7, 7 + SIZE, 7 + 2 * SIZE, 7 + 3 * SIZE]),
        (0, 100 * SIZE, 2, [0, 50 * SIZE, 100 * SIZE]),
    ],
    ids=["few are one part", "none", "many are parts of equal size", "no more than asked for"],
)
def test_borders_of_parts(first, last, most, borders):
    assert borders_of_parts(first, last, most=most) == borders

"""The readings of a build are looked at in parts of a worthwhile size."""

from goodput_queries.ledger_build.passes import READINGS_OF_A_PART, borders_of_parts


def test_few_readings_are_one_part():
    assert borders_of_parts(7, 7 + 2 * READINGS_OF_A_PART - 1, most=8) == [
        7,
        7 + 2 * READINGS_OF_A_PART - 1,
    ]
    assert borders_of_parts(0, 0, most=8) == [0, 0]


def test_many_readings_are_parts_of_equal_size():
    size = READINGS_OF_A_PART

    assert borders_of_parts(7, 7 + 3 * size, most=8) == [7, 7 + size, 7 + 2 * size, 7 + 3 * size]


def test_there_are_no_more_parts_than_asked_for():
    assert borders_of_parts(0, 100 * READINGS_OF_A_PART, most=2) == [
        0,
        50 * READINGS_OF_A_PART,
        100 * READINGS_OF_A_PART,
    ]

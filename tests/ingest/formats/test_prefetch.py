"""Reading one part ahead of the store."""

import threading

import pytest

from goodput_ingest.formats.prefetch import prefetch


def test_the_next_item_is_made_while_one_is_used():
    made = threading.Event()

    def items():
        yield 1
        made.set()
        yield 2

    found = prefetch(items())

    assert next(found) == 1
    assert made.wait(timeout=10)
    assert list(found) == [2]


def test_no_more_than_one_item_waits():
    made = []

    def items():
        for number in range(9):
            made.append(number)
            yield number

    found = prefetch(items())
    next(found)
    found.close()  # type: ignore[attr-defined]

    assert made == [0, 1]


def test_small_items_do_not_keep_the_big_one_behind_them_from_being_made():
    made = []

    def items():
        for size in (9, 1, 9, 1, 9):
            made.append(size)
            yield size

    found = prefetch(items(), size=lambda size: size, most=9)
    first = next(found)
    found.close()  # type: ignore[attr-defined]

    assert first == 9
    assert made == [9, 1, 9]


def test_what_fails_fails_after_the_items_before_it():
    def items():
        yield 1
        raise ValueError("cut here")

    found = prefetch(items())

    assert next(found) == 1
    with pytest.raises(ValueError, match="cut here"):
        next(found)

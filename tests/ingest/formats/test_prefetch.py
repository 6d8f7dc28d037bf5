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


# sizes of items, how much may wait, and what is made while the first one is used
MADE_AHEAD = {
    "no more than one item waits": ([1] * 9, 1, [1, 1]),
    "small items do not keep the big one behind them from being made": (
        [9, 1, 9, 1, 9], 9, [9, 1, 9],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sizes", "most", "expected"), MADE_AHEAD.values(), ids=MADE_AHEAD)
def test_items_made_ahead(sizes, most, expected):
    made = []

    def items():
        for size in sizes:
            made.append(size)
            yield size

    found = prefetch(items(), size=lambda size: size, most=most)
    first = next(found)
    found.close()  # type: ignore[attr-defined]

    assert first == sizes[0]
    assert made == expected


def test_what_fails_fails_after_the_items_before_it():
    def items():
        yield 1
        raise ValueError("cut here")

    found = prefetch(items())

    assert next(found) == 1
    with pytest.raises(ValueError, match="cut here"):
        next(found)

"""Bars as HTML: shares of the whole, names escaped, waterfalls that end where they should."""

import re

import pytest

from goodput_app.dashboard.figures import bars
from goodput_app.dashboard.figures.bars import Part


def widths(drawn):
    return [float(found) for found in re.findall(r"flex: ([\d.]+)", drawn)]


def test_parts_of_a_bar_have_their_share_and_nothing_has_no_part():
    drawn = bars.stacked(
        [Part("Useful", 30, "productive"), Part("x", 0, None), Part("y", 10, None)], "n"
    )

    assert widths(drawn) == [0.75, 0.25]
    assert 'aria-label="n: Useful 75.0 %, y 25.0 %"' in drawn


def test_what_is_not_classified_is_hatched():
    assert "repeating-linear-gradient" in bars.paint("unknown")
    assert "repeating-linear-gradient" not in bars.paint("productive")


@pytest.mark.parametrize(
    ("first", "changes", "begin", "end", "levels"),
    [(100, [20, -30], 75, 120, [100, 120]), (10, [90], 0, 100, [10]), (5, [], 0, 5, [])],
)
def test_the_axis_of_a_waterfall_shows_small_changes(first, changes, begin, end, levels):
    assert bars.axis(first, changes) == (begin, end, levels)

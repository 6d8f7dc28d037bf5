"""One mark and one colour for each severity, readable on light and dark pages."""

import re

import polars as pl
import pytest

from goodput_app.dashboard import severities, theme
from goodput_queries.catalog.rules import SEVERITIES

PAGES = ("#ffffff", "#0e1117")  # light, dark


def test_each_severity_has_a_look_of_its_own():
    assert tuple(severities.LOOKS) == SEVERITIES
    for part in ("icon", "glyph", "line"):
        assert len({getattr(look, part) for look in severities.LOOKS.values()}) == 3


@pytest.mark.parametrize("severity", SEVERITIES)
def test_the_badge_has_mark_and_word_and_can_be_read(severity):
    look = severities.LOOKS[severity]
    html = severities.badge_html(severity)

    assert theme.contrast(look.ink, look.paper) >= 4.5
    assert int(re.search(r"font-size: (\d+)px", html)[1]) >= 13
    assert html.endswith(f"{look.glyph}</span> {severity}</span>")
    assert "<svg" not in html, "the filter of the page takes it away"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_the_badge_stands_out_from_its_page(severity, page):
    look = severities.LOOKS[severity]

    assert max(theme.contrast(paint, page) for paint in (look.line, look.paper)) >= 3


def test_a_table_has_mark_and_word():
    frame = severities.marked(pl.DataFrame({"severity": ["note", "page"]}))

    assert frame["mark"].to_list() == ["\u25cb note", "\u2b23 page"]

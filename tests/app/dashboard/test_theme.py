"""Colours: each category and severity has a look of its own, and texts can be read."""

import csv
import re
from importlib.resources import files

import polars as pl
import pytest
from streamlit.elements.lib import streamlit_plotly_theme

from goodput_app.dashboard import severities, theme
from goodput_app.server import streamlit_theme
from goodput_queries.catalog.rules import SEVERITIES

REFERENCE = files("goodput_queries").joinpath("sql", "reference")
CATEGORIES = list(
    csv.DictReader(
        REFERENCE.joinpath("gpu_second_categories.csv").read_text(encoding="utf-8").splitlines()
    )
)
GROUPS = REFERENCE.joinpath("ledger_groups.csv").read_text(encoding="utf-8")


def test_every_category_has_a_style_of_its_own_and_the_reverse():
    assert {row["colour"] for row in CATEGORIES} == set(theme.STYLES)
    looks = [(look.colour, look.hatch) for look in theme.STYLES.values()]
    assert len(set(looks)) == len(looks)


def test_every_category_has_a_place_in_the_order():
    groups = {row["ledger_group"] for row in csv.DictReader(GROUPS.splitlines())}
    assert sorted({row["category"] for row in CATEGORIES} | groups) == sorted(theme.ORDER)


def test_not_settled_and_throttled_are_hatched():
    of = ("unsettled", "throttled")
    assert all(look.hatch for look in theme.STYLES.values() if look.family in of)


@pytest.mark.parametrize(("base", "of_charts"), [("light", "#262730"), ("dark", "#fafafa")])
def test_texts_of_charts_can_be_read(base, of_charts):
    """WCAG 2.2 asks for 4.5 where text is small; of all other texts: test_accessibility.

    of_charts: what Streamlit makes of CHART_TEXT
    """
    page = streamlit_theme.THEME[f"theme.{base}.backgroundColor"]
    assert theme.contrast(of_charts, page) >= 4.5


def test_the_colour_of_texts_in_charts_is_one_that_streamlit_replaces():
    assert streamlit_plotly_theme.GRAY_90 == theme.CHART_TEXT


def test_text_on_a_category_and_on_an_allocation_can_be_read():
    for name, look in theme.STYLES.items():
        assert theme.contrast(theme.ink(name), look.colour) >= 4.5, name
    for paint in theme.HOLDER_COLOURS:
        assert theme.contrast("#ffffff", paint) >= 4.5


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


def test_a_table_has_mark_and_word():
    frame = severities.marked(pl.DataFrame({"severity": ["note", "page"]}))

    assert frame["mark"].to_list() == ["\u25cb note", "\u2b23 page"]

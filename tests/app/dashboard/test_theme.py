"""Colours: families and severities can be distinguished, both themes can be read."""

import csv
import itertools
import re
from importlib.resources import files

import numpy as np
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
# One of each family that must not be taken for another.
FAMILIES = {
    "productive": "productive", "free": "free", "own": "checkpoint", "waiting": "straggler",
    "failed": "failed_run", "throttled": "throttled", "unsettled": "unknown",
}  # fmt: skip
# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
DEFICIENCIES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
}  # fmt: skip


XYZ_OF_RGB = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
) / [[0.95047], [1.0], [1.08883]]


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


@pytest.mark.parametrize("deficiency", [None, *DEFICIENCIES])
def test_families_can_be_distinguished(deficiency):
    """A distance of 15 in CIELAB, or a pattern that only one of the two has."""
    for (one, a), (other, b) in itertools.combinations(FAMILIES.items(), 2):
        first, second = theme.STYLES[a], theme.STYLES[b]
        distance = np.linalg.norm(_lab(first.colour, deficiency) - _lab(second.colour, deficiency))
        is_hatched = bool(first.hatch) != bool(second.hatch)
        assert distance >= 15 or is_hatched, (one, other, deficiency, distance)


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


def _lab(paint, deficiency):
    rgb = np.array([int(paint[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    if deficiency is not None:
        linear = np.clip(np.array(DEFICIENCIES[deficiency]) @ linear, 0, 1)
    v = XYZ_OF_RGB @ linear
    x, y, z = np.where(v > 0.008856, np.cbrt(v), 7.787 * v + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


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

"""Colours: every category has one, families can be distinguished, both themes can be read."""

from __future__ import annotations

import csv
import itertools
from importlib.resources import files

import pytest
from streamlit import config

from goodput_app.dashboard import theme

REFERENCE = files("goodput_queries").joinpath("sql", "reference")
CATEGORIES = list(
    csv.DictReader(
        REFERENCE.joinpath("gpu_second_categories.csv").read_text(encoding="utf-8").splitlines()
    )
)
GROUPS = REFERENCE.joinpath("ledger_groups.csv").read_text(encoding="utf-8")
# One of each family that must not be taken for another.
FAMILIES = {
    "productive": "productive",
    "free": "free",
    "own": "checkpoint",
    "waiting": "straggler",
    "failed": "failed_run",
    "throttled": "throttled",
    "unsettled": "unknown",
}
# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
DEFICIENCIES = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
Triple = tuple[float, float, float]


def test_every_category_has_a_style_of_its_own_and_the_reverse() -> None:
    assert {row["colour"] for row in CATEGORIES} == set(theme.STYLES)
    looks = [(look.colour, look.hatch) for look in theme.STYLES.values()]
    assert len(set(looks)) == len(looks)


def test_every_category_has_a_place_in_the_order() -> None:
    groups = {row["ledger_group"] for row in csv.DictReader(GROUPS.splitlines())}
    assert sorted({row["category"] for row in CATEGORIES} | groups) == sorted(theme.ORDER)


def test_a_category_is_painted_in_the_colour_of_its_meaning() -> None:
    for row in CATEGORIES:
        family = theme.STYLES[row["colour"]].family
        if row["kind"] == "unsettled":
            assert family == "unsettled"
        elif row["group"] == "free":
            assert family in {"free", "unsettled"}
        elif row["blame"] == "fault":
            assert family == "failed"
        elif row["blame"] == "use":
            assert family == "productive"


def test_not_settled_and_throttled_are_hatched() -> None:
    for look in theme.STYLES.values():
        assert bool(look.hatch) == (look.hatch != "")
        if look.family in {"unsettled", "throttled"}:
            assert look.hatch


def test_unsplit_steps_are_productive_green_hatched() -> None:
    step, productive = theme.style("step"), theme.style("productive")
    assert step.colour == productive.colour
    assert step.hatch
    assert not productive.hatch


def test_a_colour_that_is_not_ours_is_unknown() -> None:
    assert theme.style("no such key") == theme.style(None) == theme.STYLES["unknown"]


@pytest.mark.parametrize("deficiency", [None, *DEFICIENCIES])
def test_families_can_be_distinguished(deficiency: str | None) -> None:
    """A distance of 15 in CIELAB, or a pattern that only one of the two has."""
    for (one, a), (other, b) in itertools.combinations(FAMILIES.items(), 2):
        first, second = theme.STYLES[a], theme.STYLES[b]
        distance = _distance(first.colour, second.colour, deficiency)
        is_hatched = bool(first.hatch) != bool(second.hatch)
        assert distance >= 15 or is_hatched, (one, other, deficiency, distance)


@pytest.mark.parametrize("base", ["light", "dark"])
def test_every_colour_stands_out_from_the_page(base: str) -> None:
    page = theme.STREAMLIT_CONFIG[f"theme.{base}.backgroundColor"]
    for name, look in theme.STYLES.items():
        assert _contrast(look.colour, page) >= 1.5, name


def test_text_on_a_category_can_be_read() -> None:
    for name, look in theme.STYLES.items():
        assert _contrast(theme.ink(name), look.colour) >= 2.8, name


def test_streamlit_knows_every_option() -> None:
    known = config.get_config_options()
    assert set(theme.STREAMLIT_CONFIG) <= set(known)


def _linear(paint: str) -> Triple:
    channels = (int(paint[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return red, green, blue


def _luminance(rgb: Triple) -> float:
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(_linear(one)), _luminance(_linear(other))))
    return (lighter + 0.05) / (darker + 0.05)


def _distance(one: str, other: str, deficiency: str | None) -> float:
    pairs = zip(_lab(one, deficiency), _lab(other, deficiency), strict=True)
    return float(sum((a - b) ** 2 for a, b in pairs) ** 0.5)


def _lab(paint: str, deficiency: str | None) -> Triple:
    rgb = _linear(paint)
    if deficiency is not None:
        seen = [
            sum(weight * value for weight, value in zip(row, rgb, strict=True))
            for row in DEFICIENCIES[deficiency]
        ]
        rgb = (min(1, max(0, seen[0])), min(1, max(0, seen[1])), min(1, max(0, seen[2])))
    red, green, blue = rgb
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)

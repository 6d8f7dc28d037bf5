"""The ledger in nine groups, and colours: each has a look of its own, and texts can be read."""

import polars as pl
import pytest
from streamlit.elements.lib import streamlit_plotly_theme

from goodput_app.dashboard import severities, theme
from goodput_app.dashboard.data.ledger_groups import grouped, of_categories, over_time
from goodput_app.server import streamlit_theme
from goodput_queries.catalog import models
from goodput_queries.catalog.rules import SEVERITIES

KNOWN = pl.read_csv(models.reference_files()["ledger_groups"])
CATEGORIES = pl.read_csv(models.reference_files()["gpu_second_categories"])


def ledger(**changes):
    """Return a ledger in which the n-th category has n seconds, but for those named."""
    amounts = [changes.get(c, 1000 * n) for n, c in enumerate(CATEGORIES["category"])]
    return CATEGORIES.with_columns(
        pl.Series("gpu_ms", amounts),
        pl.lit(1.0).alias("cost"),
        pl.col("kind").replace("goodput_optional", "badput"),
    )


def test_every_category_is_in_one_of_nine_groups_and_has_a_style_and_a_place_of_its_own():
    assert sorted(KNOWN["category"]) == sorted(CATEGORIES["category"])
    assert len(KNOWN["ledger_group"].unique().to_list()) == 9
    assert set(KNOWN["colour"]) <= set(CATEGORIES["colour"]) == set(theme.STYLES)
    looks = [(look.colour, look.hatch) for look in theme.STYLES.values()]
    assert len(set(looks)) == len(looks)
    greys = (theme.STYLES[name].colour for name in ("unknown", "drained"))
    assert theme.contrast(*greys) >= 2.5, "Unclassified and Not available"
    hatched = ("unsettled", "throttled")
    assert all(look.hatch for look in theme.STYLES.values() if look.family in hatched)
    assert sorted({*CATEGORIES["category"], *KNOWN["ledger_group"]}) == sorted(theme.ORDER)


def test_the_groups_add_up_to_the_ledger_in_the_order_of_stacks():
    found = grouped(ledger(), KNOWN)
    assert found["category"][:2].to_list() == ["useful", "slowdowns"]
    assert found["gpu_ms"].sum() == ledger()["gpu_ms"].sum()
    assert found["cost"].sum() == pytest.approx(ledger()["cost"].sum())


def test_a_group_has_its_largest_category_and_what_was_wasted():
    rows = grouped(ledger(idle_no_demand=10**9), KNOWN)

    free = rows.filter(category="unallocated").row(0, named=True)
    assert free["largest"] == "idle_no_demand"
    assert free["wasted_ms"] < free["gpu_ms"], "free of unknown state is not wasted"
    assert rows.filter(category="useful")["wasted_ms"].item() == 0


def test_evaluation_that_counts_is_useful():
    counted = ledger().with_columns(
        pl.when(pl.col("category") == "other_declared")
        .then(pl.lit("goodput"))
        .otherwise("kind")
        .alias("kind")
    )

    assert of_categories(counted, KNOWN)["other_declared"] == "useful"
    assert of_categories(ledger(), KNOWN)["other_declared"] == "declared"


def test_over_time_the_groups_add_up_in_each_bucket():
    names = ["lost_work", "fault_stall", "productive", "lost_work"]
    frame = pl.DataFrame({"bucket_at": [1, 1, 1, 2], "category": names, "gpu_ms": [10, 20, 30, 40]})
    found = over_time(frame, of_categories(ledger(), KNOWN))
    assert sorted(found.rows()) == [(1, "failures", 30), (1, "useful", 30), (2, "failures", 40)]


def test_texts_of_charts_on_a_category_and_on_an_allocation_can_be_read():
    """WCAG 2.2 asks for 4.5 where text is small; of all other texts: test_sweep."""
    assert streamlit_plotly_theme.GRAY_90 == theme.CHART_TEXT, "which Streamlit replaces by these"
    for base, of_charts in (("light", "#262730"), ("dark", "#fafafa")):
        page = streamlit_theme.THEME[f"theme.{base}.backgroundColor"]
        assert theme.contrast(of_charts, page) >= 4.5
    for name, look in theme.STYLES.items():
        assert theme.contrast(theme.ink(name), look.colour) >= 4.5, name
    for paint in theme.HOLDER_COLOURS:
        assert theme.contrast("#ffffff", paint) >= 4.5


@pytest.mark.parametrize("severity", SEVERITIES)
def test_badge_and_table_have_mark_and_word_and_can_be_read(severity):
    look = severities.LOOKS[severity]
    html = severities.badge_html(severity)

    assert theme.contrast(look.ink, look.paper) >= 4.5
    assert html.endswith(f"{look.glyph}</span> {severity}</span>")
    assert "<svg" not in html, "the filter of the page takes it away"
    frame = severities.marked(pl.DataFrame({"severity": ["note", "page"]}))
    assert frame["mark"].to_list() == ["\u25cb note", "\u2b23 page"]

"""The wall says what is wrong, escapes names, and finds room for every rack."""

from datetime import datetime, timedelta

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE
from tests.queries.conftest import Evidence

from goodput_app.dashboard.components.fleet import fleet_now, fleet_wall
from goodput_app.dashboard.components.overview import status
from goodput_app.dashboard.figures.fleet import wall

AT = datetime(2026, 11, 20, 5, 30)  # noqa: DTZ001 -- UTC, as the database has it


def open_rows(*rows):
    """Return open findings: (severity, title, subject, state)."""
    return pl.DataFrame(rows, schema=["severity", "title", "subject", "state"], orient="row")


DOWN = ("page", "A node is down", "n1", "open")
HUNG = ("page", "A collective hangs", "run-7", "acknowledged")
SLOW = ("ticket", "A link is slow", "n2", "acknowledged")


@pytest.mark.parametrize(
    ("now", "kind", "said", "more"),
    [
        (None, "not known", "Findings are being evaluated", ""),
        (open_rows(), "well", "No page and no ticket is open", ""),
        (open_rows(SLOW), "ticket", "1 ticket: n2: a link is slow", "acknowledged"),
        (open_rows(DOWN, HUNG, SLOW), "page",
         "2 pages: n1 is down, run-7: a collective hangs", "not acknowledged"),
    ],
    ids=["not evaluated", "nothing", "a ticket", "pages first"],
)  # fmt: skip
def test_the_band_names_the_worst_that_is_open_and_who_has_it(now, kind, said, more):
    found = fleet_wall.band(now, "LIVE", AT)

    assert (found.severity, found.said, found.more) == (kind, said, more)
    assert found.length == "live 05:30 UTC"


def cells(racks, nodes=4, gpus=8):
    rows = [
        {"block": f"r{rack}", "line": f"c/{rack}-{node}", "category": "useful", "label": "Useful",
         "colour": "productive"}
        for rack in range(racks)
        for node in range(nodes)
        for _ in range(gpus)
    ]  # fmt: skip
    return pl.DataFrame(rows)


@pytest.mark.parametrize("racks", [1, 18, 40])
def test_all_racks_fit_and_few_have_large_cells(racks):
    side = wall.cell_vw(cells(racks))

    across = int(wall.WIDTH_VW / (9.2 * side))
    assert -(-racks // across) * (4 * side + wall.TITLE_VW) <= wall.HEIGHT_VW
    assert (side == wall.LARGEST_VW) == (racks == 1)


def test_names_on_the_wall_are_text():
    drawn = wall.page(
        wall.Wrong("page", HOSTILE, "", ""), [wall.Number(HOSTILE, "", "")],
        cells(1).with_columns(block=pl.lit(HOSTILE)), fleet_now.marks(None),
        [wall.Wrong("ticket", HOSTILE, HOSTILE, "")], "",
    )  # fmt: skip

    assert HOSTILE not in drawn


def test_overview_and_fleet_are_the_wall_for_who_sees_all(store, visit):
    made = Evidence(store)
    made.node("a", 2)
    made.watched(timedelta(hours=1).total_seconds())
    store.build()

    for page in ("fleet_overview", "fleet_map"):
        app = visit(store, page, view="wall")
        (drawn,) = (html.proto.body for html in app.get("html") if "gp-wall" in html.proto.body)
        assert "No page and no ticket is open" in drawn
        assert "2 GPUs" in drawn
        assert app.button(key="wall").label == "Leave wall view"


def test_a_finding_on_the_wall_lasts_to_the_end_of_its_own_cluster_s_data():
    finding = {"cluster": "c", "since_at": AT - timedelta(hours=3)}

    assert status.length(finding, {"c": AT, "later": AT + timedelta(hours=9)}) == 3 * 3600

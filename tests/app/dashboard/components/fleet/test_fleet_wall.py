"""The fleet now, in a sentence and on the wall: what is wrong, and room for every rack."""

from datetime import datetime, timedelta

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE
from tests.tables import each

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


@each({"not evaluated": (None, "not known", "Findings are being evaluated", ""),
"nothing": (open_rows(), "well", "No page and no ticket is open", ""),
"a ticket": (open_rows(SLOW), "ticket", "1 ticket: n2: a link is slow", "acknowledged"),
"pages first": (open_rows(DOWN, HUNG, SLOW), "page",
     "2 pages: n1 is down, run-7: a collective hangs", "not acknowledged"),
})  # fmt: skip
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


def test_overview_and_fleet_are_the_wall_for_who_sees_all(unpriced, visit):
    for page in ("fleet_overview", "fleet_map"):
        app = visit(unpriced, page, view="wall")
        (drawn,) = (html.proto.body for html in app.get("html") if "gp-wall" in html.proto.body)
        assert "No page and no ticket is open" in drawn
        assert "4 GPUs" in drawn
        assert app.button(key="wall").label == "Leave wall view"


QUEUE = {"waiting": pl.Int64, "waiting_gpus": pl.Int64}


def states(*nodes):
    """Return GPUs: (category, number) for each node."""
    rows = [
        {"node_key": f"c/n{nr}", "category": category, "gpu_model": "H100"}
        for nr, parts in enumerate(nodes)
        for category, number in parts
        for _ in range(number)
    ]
    return pl.DataFrame(rows)


@each({"all at work": ([[("productive", 8)]], [], "no node down, no GPU free"),
"one drained": ([[("drained", 8)], [("idle_no_demand", 8)], [("idle_with_demand", 2), ("idle", 6)]],
     [(3, 24), (1, 8)],
     "1 node drained, no node down, 10 H100 free, 8 of them in 1 whole node, "
     "4 jobs wait for 32 GPUs"),
"one down": ([[("down", 8)], [("powered_off", 8)], [("idle_no_demand", 1), ("productive", 7)]],
     [(1, 1)], "1 node down, 1 node powered off, 1 H100 free, 1 job waits for 1 GPU"),
})  # fmt: skip
def test_the_sentence_has_what_is_out_what_is_free_and_who_waits(nodes, queue, said):
    found = fleet_now.sentence(states(*nodes), pl.DataFrame(queue, schema=QUEUE, orient="row"))
    assert found == said


def test_a_node_carries_its_worst_open_page_or_ticket_which_lasts_to_the_end_of_the_data():
    row = {"cluster": "c", "node": "n1", "state": "open", "kind": "availability", "is_open": True}
    findings = pl.DataFrame([
        row | {"severity": "page", "title": "down"}, row | {"severity": "ticket", "title": "slow"},
        row | {"node": "n2", "severity": "note", "title": "late"},
        row | {"node": "n3", "severity": "page", "title": "was down", "is_open": False},
        row | {"node": None, "severity": "ticket", "title": "of the fleet"},
    ])  # fmt: skip

    assert fleet_now.marks(findings).rows() == [("c/n1", "page", "down")]
    finding, later = {"cluster": "c", "since_at": AT - timedelta(hours=3)}, timedelta(hours=9)
    assert status.length(finding, {"c": AT, "later": AT + later}) == 3 * 3600, "of its cluster"

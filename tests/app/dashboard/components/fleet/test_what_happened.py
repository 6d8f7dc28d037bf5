"""What happened to a node is one list of all sources, with the times of the sources."""

from datetime import datetime, timedelta

import polars as pl
import pytest
from tests.app.page_elements import sent
from tests.queries.conftest import Evidence

from goodput_app.dashboard import theme
from goodput_app.dashboard.components.fleet import node_axis, what_happened
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.data import health

AT = datetime(2026, 11, 20, 3)  # noqa: DTZ001 -- UTC, as the database has it


def after(minutes):
    return AT + timedelta(minutes=minutes)


PLACE = {"cluster": "c", "node": "n1"}
OUTAGES = pl.DataFrame(
    [PLACE | {"state": "down", "start_at": after(19), "end_at": after(105), "out_at": after(19),
              "reason": "Not responding", "sources": "slurm"}],
    schema=health.NO_OUTAGES.schema,
)  # fmt: skip
EVENTS = pl.DataFrame(
    [PLACE | {"gpu_uuid": "g", "event_at": after(17), "kind": "xid", "code": 79,
              "source": "kernel-log", "meaning": "fell off the bus", "message": "",
              "ts_precision": "exact"}]
)  # fmt: skip
LINKS = pl.DataFrame(
    [PLACE | {"kind": "ethernet", "device": "eth0", "port": "", "start_at": after(30),
              "end_at": after(31), "runs": "train", "run_key": "r", "is_seen_down": True}]
)  # fmt: skip
ALLOCATIONS = pl.DataFrame(
    [PLACE | {"gpu_uuid": gpu, "job_run_key": "j", "run_key": "r", "run_id": "7", "attempt": 0,
              "job_name": "train", "start_at": after(0), "end_at": after(19)} for gpu in "gh"]
)  # fmt: skip
TESTS = pl.DataFrame(
    [PLACE | {"source": "node-tests", "event_at": after(110), "test": "memory", "gpu_indices": gpu,
              "result": "fail" if gpu else "pass", "message": None} for gpu in ("", "1", "0")]
)  # fmt: skip
FINDINGS = pl.DataFrame(
    [PLACE | {"since_at": after(19), "until_at": after(105), "severity": "page", "cost": 4.5,
              "title": "A node is down", "evidence": "no reading", "gpu_uuid": None,
              "finding_key": "node_down|n1", "run_key": None, "run_name": None}]
)  # fmt: skip


def test_the_list_has_all_sources_with_their_own_times_the_latest_first():
    found = what_happened.merged(OUTAGES, EVENTS, LINKS, ALLOCATIONS, TESTS, FINDINGS)

    assert found.select("start_at", "what", "source", "length_s").rows() == [
        (after(110), "Test pass: memory", "node-tests", None),
        (after(110), "Test fail: memory (GPU 0, 1)", "node-tests", None),
        (after(30), "Link down: Ethernet eth0", "ethernet", 60.0),
        (after(19), "Page: A node is down", "finding", 86 * 60.0),
        (after(19), "Node down", "slurm", 86 * 60.0),
        (after(17), "Xid 79", "kernel-log", None),
        (after(0), "Run began on 2 of its GPUs", "allocation", 19 * 60.0),
    ]
    assert found["cost"].to_list() == [None] * 3 + [4.5] + [None] * 3


def test_findings_that_are_not_yet_known_are_left_out():
    found = what_happened.merged(
        OUTAGES, EVENTS.clear(), LINKS.clear(), ALLOCATIONS.clear(), TESTS.clear(), None
    )

    assert found["what"].to_list() == ["Node down"]


def test_the_time_axis_marks_events_and_findings():
    found = what_happened.merged(OUTAGES, EVENTS, LINKS, ALLOCATIONS, TESTS, FINDINGS)

    marks = node_axis.marks(found)

    assert marks.select("at", "severity").rows() == [
        (after(30), None), (after(19), "page"), (after(17), None),
    ]  # fmt: skip
    assert "Page: A node is down<br>no reading" in marks["hover"].to_list()


def test_a_time_in_the_list_marks_its_event_on_the_axis_and_selects_its_row(store, visit):
    made = Evidence(store)
    made.node("a", 1)
    made.samples("a#0", made.every(0, 600, 30), lambda _second: True)
    made.state("a", "drained", 300, None)
    store.build()
    page = visit(store, "nodes_and_one", node="a")
    (button,) = (b for b in page.button if (b.key or "").startswith("happened_at_"))

    app = button.click().run()

    (listed,) = (f for f in app.dataframe if "what" in f.value)
    assert app.query_params["happened"] == f"{Evidence.at(300)}.000000|Node drained"
    assert app.session_state["pick_happened"]["selection"]["rows"] == [0]
    assert listed.value["what"].to_list() == ["Node drained"]
    assert theme.CHOSEN_LINE["color"] in sent(app)


def test_beside_the_lanes_begins_of_runs_leave_room_for_what_went_wrong(monkeypatch):
    monkeypatch.setattr(what_happened, "BRIEF_SHOWN", 2)
    rows = what_happened.merged(
        OUTAGES, EVENTS, LINKS.clear(), ALLOCATIONS, TESTS.clear(), FINDINGS.clear()
    )

    found = what_happened.most_telling(rows)

    assert found["what"].to_list() == ["Node down", "Xid 79"]


@pytest.mark.parametrize(
    ("column", "row", "page"),
    [
        ("node", PLACE, name_links.NODE_PAGE),
        ("run_name", {"run_key": "c/7", "run_name": "train"}, name_links.RUN_PAGE),
        ("gpu_name", {"gpu_uuid": "g", "gpu_name": "GPU 0"}, name_links.GPU_PAGE),
        ("subject", PLACE | {"run_key": "c/7"}, name_links.NODE_PAGE),
        ("subject", {"node": None, "run_key": "c/7"}, name_links.RUN_PAGE),
        ("subject", {"node": None, "run_key": None}, None),
    ],
)
def test_a_name_opens_the_page_of_what_it_names(column, row, page, monkeypatch):
    monkeypatch.setattr(name_links.st, "query_params", {})

    found = name_links.target(column, row)

    assert (found and found[0]) == page


def test_a_drained_node_is_first_in_the_list_and_says_since_when(store, visit):
    made = Evidence(store)
    for node in ("a", "b"):
        made.node(node, 1)
        made.samples(f"{node}#0", made.every(0, 600, 30), lambda _second: True)
    made.state("b", "drained", 300, None)
    store.build()

    nodes = visit(store, "nodes_and_one")
    (frame,) = (f.value for f in nodes.dataframe if "state" in f.value)
    assert frame["node"].to_list() == ["b", "a"]
    assert "drained since" in frame["state"][0]

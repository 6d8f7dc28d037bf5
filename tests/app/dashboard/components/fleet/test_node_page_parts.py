"""Parts of the node page: incidents, jobs as lanes, what happened, and how it is configured."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, sent, texts
from tests.queries.conftest import Evidence
from tests.tables import each, gives

from goodput_app.dashboard import flags, theme
from goodput_app.dashboard.components import flag_parts
from goodput_app.dashboard.components.fleet import (
    node_axis,
    node_parts,
    node_verdict,
    what_happened,
)
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.data import health

AT = datetime(2026, 11, 20, 3)  # noqa: DTZ001 -- UTC, as the database has it


def after(minutes):
    return AT + timedelta(minutes=minutes)


def outages(*spans):
    rows = [
        {"cluster": "c", "node": "n", "state": "down", "start_at": after(start),
         "end_at": None if end is None else after(end), "out_at": None, "reason": None,
         "sources": "slurm"}
        for start, end in spans
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=health.NO_OUTAGES.schema)


def test_an_incident_is_drawn_and_shown_with_an_hour_around_it_up_to_what_is_known():
    rows, view = outages((60, 90), (300, None)), SimpleNamespace(end=after(600), as_of=after(330))
    drawn = node_axis.states(rows, view)

    shown = node_verdict.incident_ranges(rows, after(330))
    assert shown == [(after(0), after(150)), (after(240), after(330))]
    assert drawn.select("label", "end_at").rows() == [("Down", after(90)), ("Down", after(330))]


FIRST, SECOND, THIRD = [(after(start), after(start + 120)) for start in (0, 300, 600)]

test_the_buttons_lead_to_the_incident_before_and_after_the_time_range = gives(
    lambda shown: node_verdict.beside([FIRST, SECOND, THIRD], shown),
    {"a range with all of them": ((after(-600), after(900)), (THIRD, None)),
     "between two": ((after(200), after(250)), (FIRST, SECOND)),
     "the second one": (SECOND, (FIRST, THIRD)), "the first one": (FIRST, (None, SECOND))},
)  # fmt: skip


def test_jobs_that_have_gpus_at_the_same_time_stand_in_lanes_of_their_own():
    rows = [
        {"job_run_key": key, "attempt": 0, "job_name": key, "run_id": key, "team": None,
         "user_name": "ada", "gpu_uuid": gpu, "gpu_instance": "", "start_at": after(start),
         "end_at": after(end)}
        for key, gpu, start, end in [
            ("a", "g0", 0, 60), ("a", "g1", 0, 60), ("b", "g2", 30, 90), ("c", "g0", 60, 90),
            ("never", "g0", 90, 90),
        ]
    ]  # fmt: skip

    found = node_axis.jobs(pl.DataFrame(rows, schema_overrides={"team": pl.String}))

    lanes = [
        ("Jobs", "a / ada / 2 GPUs"), ("Jobs", "c / ada / 1 GPU"), ("Jobs 2", "b / ada / 1 GPU"),
    ]  # fmt: skip
    assert found.select("lane", "hover").rows() == lanes
    assert found["name"].to_list() == ["a", "c", "b"]


def test_a_bin_without_a_reading_and_an_hour_without_a_ledger_are_below_all_others():
    view = SimpleNamespace(start=AT, end=AT + timedelta(minutes=node_parts.SPARK_BINS))
    activity = {"sm_active_ratio": [0.0, 0.5], "engine_active_ratio": None, "gpu_busy_ratio": None}
    series = pl.DataFrame({"gpu_uuid": ["g", "g"], "at": [after(0), after(2)], **activity})
    hours = pl.DataFrame(
        {"cluster": ["c"] * 3, "node": ["a", "a", "b"], "hour_ms": [0, 1, 1],
         "useful_ratio": [0.25, 0.5, 1.0]}
    )  # fmt: skip

    (found,) = node_parts.sparklines(series, view)["activity"].to_list()
    by_hour = dict(node_parts.useful_by_hour(hours).select("node", "useful").iter_rows())

    assert found[:4] == [0.0, node_parts.NO_READING, 0.5, node_parts.NO_READING]
    assert len(found) == node_parts.SPARK_BINS
    assert by_hour == {"a": [0.25, 0.5], "b": [node_parts.NO_READING, 1.0]}


def test_nodes_that_a_finding_names_stand_first_the_worst_on_top(monkeypatch):
    both = ["b", "c, d, AllReduce on 16 ranks"]
    found = pl.DataFrame({"severity": ["note", "ticket"], "node": ["b", None], "subject": both})
    found = found.with_columns(gpu_uuid=None, run_key=None)
    monkeypatch.setattr(flag_parts, "_of_page", lambda: flags.by_node(found))

    shown = flag_parts.flagged_first(pl.DataFrame({"node": ["a", "b", "c", "d"]}), "node")

    assert shown["node"].to_list() == ["c", "d", "b", "a"]


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
              "finding_key": "node_down|n1", "run_key": None, "run_name": None, "subject": "n1"}]
)  # fmt: skip


def test_the_list_has_all_sources_with_their_own_times_and_the_axis_marks_its_events():
    found = what_happened.merged(
        OUTAGES, EVENTS, TESTS, FINDINGS, links=LINKS, allocations=ALLOCATIONS
    )
    marks = node_axis.marks(found)

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
    severities = [(after(30), None), (after(19), "page"), (after(17), None)]
    assert marks.select("at", "severity").rows() == severities
    assert "Page: A node is down<br>no reading" in marks["hover"].to_list()


def test_unknown_findings_are_left_out_and_begins_of_runs_give_way(monkeypatch):
    monkeypatch.setattr(what_happened, "BRIEF_SHOWN", 2)
    found = what_happened.merged(OUTAGES, EVENTS, TESTS.clear(), None, allocations=ALLOCATIONS)
    assert found["what"].to_list() == ["Node down", "Xid 79", "Run began on 2 of its GPUs"]
    assert what_happened.most_telling(found)["what"].to_list() == ["Node down", "Xid 79"]


def test_the_list_of_the_fleet_has_one_row_for_one_event_and_the_worst_first():
    ended = {"run_key": "r", "run_name": "train", "attempt": 0, "outcome": "limit", "cost": 9.0}
    failed = pl.DataFrame([ended | {"cluster": "c", "start_at": after(20), "reason": "TIMEOUT"}])

    every = what_happened.merged(OUTAGES, EVENTS, TESTS, FINDINGS, failures=failed)
    found = what_happened.of_fleet(every)
    assert what_happened.counted(found) == "1 page, 1 failed attempt, 1 GPU error, 1 failed test"
    worst = what_happened.worst(found, 2)["what"].to_list()
    assert worst == ["Attempt 0 reached its time limit", "Page: A node is down"]


@each(
    ("node", PLACE, name_links.NODE_PAGE),
    ("run_name", {"run_key": "c/7", "run_name": "train"}, name_links.RUN_PAGE),
    ("best_run_name", {"best_run_key": "c/7"}, name_links.RUN_PAGE),
    ("gpu_name", {"gpu_uuid": "g", "gpu_name": "GPU 0"}, name_links.GPU_PAGE),
    ("subject", PLACE | {"run_key": "c/7"}, name_links.NODE_PAGE),
    ("subject", {"node": None, "run_key": "c/7"}, name_links.RUN_PAGE),
    ("subject", {"node": None, "run_key": None}, None),
)
def test_a_name_opens_the_page_of_what_it_names(monkeypatch, column, row, page):
    monkeypatch.setattr(name_links.st, "query_params", {})

    found = name_links.target(column, row)

    assert (found and found[0]) == page


NODES = ("a", "b", "d")
SETTING = {"setting": "vm.swappiness", "belongs_to": "node"}


@pytest.fixture(scope="module")
def world(made):
    """Give four clusters.

    c: nodes with a job and a snapshot each, of which one differs in both. later: a node with two
    snapshots. bare: one without any. out: two nodes, of which one is drained.
    """
    later, bare, out = (Evidence(made.store, name) for name in ("later", "bare", "out"))
    for cluster, nodes in ((made, NODES), (later, ("twice",)), (bare, ("none",))):
        for node in nodes:
            cluster.node(node, 1)
        cluster.watched(7200)
    made.job("1", 60, 3600, list(NODES), 3)
    for node in NODES:
        is_odd = node == "d"
        rows = [
            SETTING | {"value": "60" if is_odd else "10"},
            {"setting": "gpu.count", "unknown_because": "no driver", "belongs_to": "node"},
            {"setting": "env:NCCL_HOME", "value": HOSTILE, "belongs_to": "process"},
            {"setting": "env:NCCL_IB_DISABLE", "value": str(+is_odd), "belongs_to": "process"},
        ]
        made.add("node_settings", *rows, node=node, ts=0, run_id="1")
    for taken_s, value in ((3600, "10"), (5400, "60")):
        row = SETTING | {"value": value}
        later.add("node_settings", row, node="twice", ts=taken_s, run_id="")
    for node in ("up", "z-out"):
        out.node(node, 1)
        out.samples(f"{node}#0", out.every(0, 600, 30), lambda _second: True)
    out.state("z-out", "drained", 300, None)
    made.store.build()
    return made.store


def test_a_drained_node_is_first_in_the_list_and_says_since_when(world, visit):
    app = visit(world, "nodes_and_one", cluster="out")
    (frame,) = (f.value for f in app.dataframe if "state" in f.value)
    assert frame["node"].to_list() == ["z-out", "up"]
    assert "drained since" in frame["state"][0]


def table(app, column):
    """Return rows of the table that has a column, as tuples of the first three columns."""
    (found,) = [t.value for t in app.dataframe if column in t.value.columns]
    return [tuple(row[:3]) for row in found.itertuples(index=False)]


def test_a_run_shows_what_differs_between_its_nodes_first_and_all_settings_folded(world, visit):
    app = visit(world, "one_run", run="c/1")

    both = [("env:NCCL_IB_DISABLE", "1", "0"), ("vm.swappiness", "60", "10")]
    assert table(app, "usual_value") == both
    assert ("vm.swappiness", "10", 2) in table(app, "unknown_because")
    assert "sockets carry the traffic" in str([t.value.to_dict() for t in app.dataframe])


def test_a_node_shows_what_it_has_otherwise_than_its_peers_and_nothing_of_jobs(world, visit):
    app = visit(world, "nodes_and_one", node="d")
    assert table(app, "usual_value") == [("vm.swappiness", "60", "10")]
    assert [row[0] for row in table(app, "unknown_because")] == ["gpu.count", "vm.swappiness"]


def test_a_node_like_others_says_how_many_were_compared_if_any(world, visit):
    said = "No setting differs or is known to cost time; 1 node of 3 compared."
    assert said in texts(visit(world, "nodes_and_one", node="a"))
    assert "Configuration" not in texts(visit(world, "nodes_and_one", node="none"))


@each((3000, "10", True), (3700, "10", False), (7200, "60", False))
def test_a_node_shows_its_last_snapshot_or_a_later_one(world, visit, ends_s, value, is_later):
    times = {name: f"{Evidence.at(s)}Z" for name, s in (("from", 0), ("to", ends_s))}

    app = visit(world, "nodes_and_one", node="twice", **times)

    assert table(app, "unknown_because") == [("vm.swappiness", value, 1)]
    said = f"before the end of this time range; this is of {Evidence.at(3600)} UTC."
    assert (said in texts(app)) == is_later


def test_a_time_in_the_list_marks_its_event_on_the_axis_and_selects_its_row(world, visit):
    page = visit(world, "nodes_and_one", node="z-out")
    (button,) = (b for b in page.button if (b.key or "").startswith("happened_at_"))

    app = button.click().run()

    (listed,) = (f for f in app.dataframe if "what" in f.value)
    assert app.query_params["happened"] == f"{Evidence.at(300)}.000000|Node drained"
    assert app.session_state["pick_happened"]["selection"]["rows"] == [0]
    assert listed.value["what"].to_list() == ["Node drained"]
    assert theme.CHOSEN_LINE["color"] in sent(app)

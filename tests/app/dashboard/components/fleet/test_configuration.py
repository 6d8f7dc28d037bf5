"""The configuration of a node and of the nodes of a run, on their pages."""

import pytest
from tests.app.opened_page import HOSTILE, texts
from tests.queries.conftest import Evidence

NODES = ("a", "b", "d")


@pytest.fixture
def fleet(store):
    """Give three nodes with a job and a snapshot each: one of them differs in both."""
    evidence = Evidence(store)
    for node in NODES:
        evidence.node(node, 1)
    evidence.watched(7200)
    evidence.job("1", 60, 3600, list(NODES), 3)
    for node in NODES:
        is_odd = node == "d"
        rows = [
            {"setting": "vm.swappiness", "value": "60" if is_odd else "10", "belongs_to": "node"},
            {"setting": "gpu.count", "unknown_because": "no driver", "belongs_to": "node"},
            {"setting": "env:NCCL_HOME", "value": HOSTILE, "belongs_to": "process"},
            {"setting": "env:NCCL_IB_DISABLE", "value": str(+is_odd), "belongs_to": "process"},
        ]
        evidence.add("node_settings", *rows, node=node, ts=0, run_id="1")
    store.build()
    return store


def table(app, column):
    """Return rows of the table that has a column, as tuples of the first three columns."""
    (found,) = [t.value for t in app.dataframe if column in t.value.columns]
    return [tuple(row[:3]) for row in found.itertuples(index=False)]


def test_a_run_shows_what_differs_between_its_nodes_first_and_all_settings_folded(fleet, visit):
    app = visit(fleet, "one_run", run="c/1")

    assert table(app, "usual_value") == [
        ("env:NCCL_IB_DISABLE", "1", "0"),
        ("vm.swappiness", "60", "10"),
    ]
    assert ("vm.swappiness", "10", 2) in table(app, "unknown_because")
    assert "sockets carry the traffic" in str([t.value.to_dict() for t in app.dataframe])


def test_a_node_shows_what_it_has_otherwise_than_its_peers_and_nothing_of_jobs(fleet, visit):
    app = visit(fleet, "nodes_and_one", node="d")

    assert table(app, "usual_value") == [("vm.swappiness", "60", "10")]
    assert [row[0] for row in table(app, "unknown_because")] == ["gpu.count", "vm.swappiness"]


def test_a_node_like_the_others_says_how_many_were_compared(fleet, visit):
    app = visit(fleet, "nodes_and_one", node="a")

    assert "No setting differs or is known to cost time; 1 node of 3 compared." in texts(app)


@pytest.mark.parametrize(
    ("ends_s", "value", "is_later"), [(3000, "10", True), (3700, "10", False), (7200, "60", False)]
)
def test_a_node_shows_its_last_snapshot_in_the_range_else_the_first_one_after_it(
    store, visit, ends_s, value, is_later
):
    evidence = Evidence(store)
    evidence.node("a", 1)
    evidence.watched(7200)
    for taken_s, of_it in ((3600, "10"), (5400, "60")):
        row = {"setting": "vm.swappiness", "value": of_it, "belongs_to": "node"}
        evidence.add("node_settings", row, node="a", ts=taken_s, run_id="")
    store.build()
    times = {name: f"{Evidence.at(s)}Z" for name, s in (("from", 0), ("to", ends_s))}

    app = visit(store, "nodes_and_one", node="a", **times)

    assert table(app, "unknown_because") == [("vm.swappiness", value, 1)]
    said = f"before the end of this time range; this is of {Evidence.at(3600)} UTC."
    assert (said in texts(app)) == is_later


def test_without_a_snapshot_there_is_no_table(store, visit):
    evidence = Evidence(store)
    evidence.node("a", 1)
    evidence.watched(7200)
    store.build()

    assert "Configuration" not in texts(visit(store, "nodes_and_one", node="a"))

"""The sentence about the fleet, and which nodes of its map carry a mark."""

import polars as pl
import pytest

from goodput_app.dashboard.components.fleet import fleet_now

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


@pytest.mark.parametrize(
    ("nodes", "queue", "said"),
    [
        ([[("productive", 8)]], [], "no node down, no GPU free"),
        (
            [[("drained", 8)], [("idle_no_demand", 8)], [("idle_with_demand", 2), ("idle", 6)]],
            [(3, 24), (1, 8)],
            "1 node drained, no node down, 10 H100 free in 1 whole node, 4 jobs wait for 32 GPUs",
        ),
        (
            [[("down", 8)], [("powered_off", 8)], [("idle_no_demand", 1), ("productive", 7)]],
            [(1, 1)],
            "1 node down, 1 node powered off, 1 H100 free, 1 job waits for 1 GPU",
        ),
    ],
    ids=["all at work", "one drained", "one down"],
)
def test_the_sentence_has_what_is_out_what_is_free_and_who_waits(nodes, queue, said):
    found = fleet_now.sentence(states(*nodes), pl.DataFrame(queue, schema=QUEUE, orient="row"))

    assert found == said


def test_a_node_carries_its_worst_open_page_or_ticket():
    row = {"cluster": "c", "node": "n1", "state": "open", "kind": "availability", "is_open": True}
    findings = pl.DataFrame(
        [
            row | {"severity": "page", "title": "down"},
            row | {"severity": "ticket", "title": "slow"},
            row | {"node": "n2", "severity": "note", "title": "late"},
            row | {"node": "n3", "severity": "page", "title": "was down", "is_open": False},
            row | {"node": None, "severity": "ticket", "title": "of the fleet"},
        ]
    )

    assert fleet_now.marks(findings).rows() == [("c/n1", "page", "down")]

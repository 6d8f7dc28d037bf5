"""Nodes ranked by what they cost: whose fault an attempt was, and what to do with the node."""

import pytest
from tests.queries.conftest import START, START_MS, Evidence, steps

from goodput_queries.scope import Scope

GPU_HOUR_MS = 3_600_000
BUS = "00000000:19:00.0"


def xid(made, node, code, second):
    made.add(
        "gpu_events", source="kernel-log", node=node, pci_bus_id=BUS, ts=second, kind="xid",
        code=code, ts_precision="exact", cluster=None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def world(new_store):
    """Nodes a to e with a GPU each; the price is 36 a GPU-hour: 0.01 a GPU-second.

    A gang on a, b and c loses 100 s of steps when a GPU of a falls off the bus. A job on d fails
    with its node twice. Node e repairs no memory any more.
    """
    made = Evidence(new_store())
    made.add(
        "gpus", *({"node": node, "gpu_uuid": f"GPU-{node}"} for node in "abcde"),
        source="inventory", gpu_index=0, pci_bus_id=BUS, gpu_model="h100", valid_from_at=START,
    )  # fmt: skip
    made.add("rates", source="rates", price_per_gpu_h=36, cluster=None)
    made.watched(1_000)
    made.job("gang", 0, 130, ["a", "b", "c"], 3, "FAILED")
    made.events("gang", steps(1, 10, 0), host="a")
    xid(made, "a", 79, 120)
    for job, start in (("d1", 0), ("d2", 400)):
        made.job(job, start, start + 200, ["d"], 1, "NODE_FAIL")
        made.state("d", "down", start + 200, start + 300)
    made.job("own", 600, 700, ["b"], 1, "FAILED")
    xid(made, "b", 31, 699)
    made.load("gpu_samples_other", [
        {
            "gpu_uuid": "GPU-e", "gpu_instance": "", "ts": made.at(s), "metric": metric, "value": v,
        }
        for s in (0, 60)
        for metric, v in (("row_remap_failed", 1), ("rows_remapped_uncorrectable_total", s / 60))
    ], "dcgm")  # fmt: skip
    made.store.build()
    yield made
    made.store.close()


def node(world, name, **scope):
    (row,) = world.store.read(
        "select * from marts.node_health where node = $1", [name], scope=Scope(**scope)
    ).to_dicts()
    return row


def test_a_failed_gang_counts_on_the_node_of_the_fault_alone(world):
    found = {name: node(world, name)["failed_attempts"] for name in "abc"}

    assert found == {"a": 1, "b": 0, "c": 0}


def test_what_the_gang_lost_is_caused_by_the_node_and_lost_on_each(world):
    """Three GPUs for 130 s: nothing of it was saved."""
    assert node(world, "a")["caused_ms"] == 3 * 130_000
    assert node(world, "a")["caused_cost"] == pytest.approx(3 * 1.30)
    assert [node(world, name)["lost_ms"] for name in "abc"] == [130_000] * 3


def test_what_attempts_lost_that_report_no_steps_is_not_known(world):
    assert (node(world, "d")["caused_ms"], node(world, "d")["caused_cost"]) == (None, None)
    assert (node(world, "b")["caused_ms"], node(world, "b")["caused_cost"]) == (0, 0)


def test_waste_on_the_nodes_adds_up_to_the_infrastructure_caused_waste_of_the_fleet(world):
    lost = world.store.read("select sum(lost_ms), sum(lost_cost) from marts.node_health").row(0)
    fleet = world.store.read(
        "select sum(gpu_ms), sum(cost) from marts.ledger_by_blame where blame = 'platform'"
    ).row(0)

    assert lost[0] == fleet[0] > 0
    assert float(lost[1]) == pytest.approx(float(fleet[1]))


def test_an_attempt_that_fails_by_its_own_fault_counts_on_no_node(world):
    found = node(world, "b")

    assert (found["failed_attempts"], found["errors"], found["verdict"]) == (0, 0, None)


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("a", "Watch", "1 error"),
        ("c", None, None),
        ("d", "Drain", "2 failed attempts"),
        ("e", "Replace", "row remap failed on 1 GPU"),
    ],
)
def test_a_verdict_is_given_where_a_rule_of_the_thresholds_says_so(world, name, verdict, reason):
    found = node(world, name)

    assert (found["verdict"], found["verdict_reason"]) == (verdict, reason)


def test_the_recommended_action_is_the_vendors_for_the_xid(world):
    assert node(world, "a")["code"] == 79
    assert node(world, "a")["what_to_do"].startswith("Drain the node and restart it")


def test_what_nobody_read_is_missing_and_what_was_read_is_a_number(world):
    read, unread = node(world, "e"), node(world, "a")

    assert (read["row_remaps"], read["remap_failed_gpus"]) == (1, 1)
    assert (unread["row_remaps"], unread["remap_failed_gpus"], unread["thermal_s"]) == (None,) * 3


def test_outages_and_their_gpu_time_are_the_nodes(world):
    found = node(world, "d")

    assert (found["failures"], found["down_ms"]) == (2, 2 * 100_000)


def test_the_window_decides_which_attempts_count(world):
    found = node(world, "d", from_ms=START_MS + 300_000)

    assert (found["failed_attempts"], found["failures"], found["verdict"]) == (1, 1, None)


def test_the_node_that_cost_most_comes_first(world):
    first = world.store.read("select node from marts.node_health order by place limit 2")

    assert first["node"].to_list() == ["a", "d"]

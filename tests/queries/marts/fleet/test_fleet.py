"""What the Fleet page asks: racks, the state of each GPU, what is not allocated and why."""

import pytest
from tests.queries.conftest import Evidence

from goodput_queries.scope import Scope

START_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
SCOPE = Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS)


@pytest.fixture(scope="module")
def store(shared_evidence):
    """Give five nodes at the end of an hour, in two racks and no rack.

    a has two of four GPUs allocated, c all of them, b and d none; e is drained.
    """
    made = shared_evidence
    for node in "abcde":
        made.node(node, 4, partitions=("p", "q") if node == "b" else ("p",))
    made.load("node_racks", [
        {"cluster": "c", "node": node, "rack": rack, "rack_row": "row 1", "feed": feed}
        for node, rack, feed in (
            ("a", "r1", "1A+1B"), ("b", "r1", "1A+1B"), ("c", "r2", None), ("d", "r2", "2A"),
        )
    ])  # fmt: skip
    made.watched(HOUR_MS / 1000)
    made.state("e", "drained", 600, HOUR_MS / 1000)
    made.job("7", 0, None, ["a"], 2, state="RUNNING", observed_at=made.at(3600), partition="p")
    made.job("8", 1800, None, ["c"], 4, state="RUNNING", observed_at=made.at(3600), partition="p")
    made.job("9", None, None, [], None, state="PENDING", submit=3000, partition="p",
             gpus_requested=16, observed_at=made.at(3600))  # fmt: skip
    made.job("10", None, None, [], None, state="PENDING", submit=3100, partition="p",
             gpus_requested=12, gpu_type_requested="h100", observed_at=made.at(3600))  # fmt: skip
    made.job("11", None, None, [], None, state="PENDING", submit=3100, partition="p",
             gpus_requested=1, gpu_type_requested="a100", observed_at=made.at(3600))  # fmt: skip
    made.load("gpu_samples", [
        {"gpu_uuid": f"c/{gpu}", "gpu_instance": "", "ts": made.at(s), "power_w": power,
         "engine_active_ratio": 0.5, "gpu_temperature_c": 60.0}
        for gpu, power, end in (("a#0", 300.0, 3541), ("c#0", 500.0, 1801), ("b#1", 100.0, 3601))
        for s in range(0, end, 60)
    ], "dcgm")  # fmt: skip
    made.xid("a", 79, 1000, gpu_uuid="c/a#1", message="off the bus")
    made.build()
    return made.store


def rows(store, view, scope=SCOPE):
    return store.read(f"from marts.{view} order by all", scope=scope).to_dicts()


def test_nodes_and_gpus_have_their_rack(store):
    nodes = {row["node"]: (row["rack"], row["feed"]) for row in rows(store, "nodes")}
    gpus = {row["node"]: row["rack_row"] for row in rows(store, "gpus")}

    assert nodes["a"] == ("r1", "1A+1B")
    assert nodes["e"] == (None, None)
    assert (gpus["a"], gpus["e"]) == ("row 1", None)


def test_racks_add_up_to_their_nodes(store):
    sums = ("gpus", "read_gpus", "capacity_ms", "held_ms", "useful_ms", "wasted_ms", "events")
    of_each = ", ".join(f"sum({name})::bigint as {name}" for name in sums)

    of_racks, of_nodes = (
        store.read(f"select {of_each} from marts.{view}", scope=SCOPE).row(0)
        for view in ("racks", "nodes")
    )

    assert of_racks == of_nodes
    assert of_racks[2] == 20 * HOUR_MS


def test_a_rack_has_the_power_of_its_nodes_and_nodes_without_one_are_a_row(store):
    unknown, first, second = sorted(rows(store, "racks"), key=lambda row: row["rack"] or "")

    assert (unknown["rack"], unknown["nodes"], unknown["power_w"]) == (None, 1, None)
    assert (first["nodes"], first["power_w"], first["events"]) == (2, 400.0, 1)
    assert second["feed"] == "2A"


def test_a_gpu_has_its_category_run_and_last_readings_at_the_end(store):
    found = {row["gpu_uuid"]: row for row in rows(store, "gpu_states")}

    a = found["c/a#0"]
    assert (a["run_id"], a["runs"], a["rack"]) == ("7", 1, "r1")
    assert (a["power_w"], a["engine_active_ratio"], a["at"]) == (300.0, 0.5, Evidence.at(3600))
    assert found["c/b#0"]["category"] == "idle_with_demand"
    assert found["c/e#0"]["category"] == "drained"
    assert found["c/a#1"]["events"] == 1
    assert len(found) == 20


def test_a_reading_of_half_an_hour_ago_is_no_state(store):
    (gpu,) = (row for row in rows(store, "gpu_states") if row["gpu_uuid"] == "c/c#0")

    assert gpu["power_w"] is None


def test_in_the_minutes_after_the_last_reading_a_job_is_as_it_was_before(store):
    last = store.read(
        "select category from marts.ledger_pieces "
        f"where gpu_uuid = 'c/a#0' and end_ms = {START_MS + HOUR_MS}"
    ).item()
    found = {row["gpu_uuid"]: row["category"] for row in rows(store, "unit_states")}

    assert last == "unknown"
    assert found["c/a#0"] == "busy_unclassified"
    assert found["c/c#0"] == "unknown"  # its readings ended half an hour before


def test_the_state_is_the_one_at_the_end_of_the_window(store):
    early = Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS // 4)

    found = {row["gpu_uuid"]: row for row in rows(store, "gpu_states", early)}

    assert found["c/c#0"]["category"] == "idle_no_demand"
    assert found["c/c#0"]["power_w"] == 500.0


def test_free_gpus_are_counted_in_blocks_that_a_job_can_have(store):
    found = {row["why"]: row for row in rows(store, "unallocated_gpus") if row["partition"] == "p"}

    whole, part = found["Whole node"], found["Part of a node"]
    assert (whole["units"], whole["blocks"], whole["largest_block"]) == (8, 2, 8)
    assert whole["largest_rack_block"] == 4
    assert (part["units"], part["blocks"], part["largest_block"]) == (2, 1, 2)
    assert part["largest_rack_block"] is None
    drained = found["Node drained"]
    assert (drained["units"], drained["is_schedulable"], drained["blocks"]) == (4, False, None)


def test_what_waits_is_counted_by_the_gpus_it_asks_for(store):
    found = {row["why"]: row for row in rows(store, "unallocated_gpus") if row["partition"] == "p"}

    assert (found["Whole node"]["waiting_jobs"], found["Whole node"]["smallest_request"]) == (2, 12)
    (other,) = (row for row in rows(store, "unallocated_gpus") if row["partition"] == "q")
    assert (other["units"], other["waiting_jobs"], other["smallest_request"]) == (4, 0, None)


def test_every_gpu_is_allocated_or_has_a_reason_why_not(store):
    held = store.read(
        "select count(*) from marts.unit_states where \"group\" = 'held'", scope=SCOPE
    ).item()
    not_held = store.read(
        "select sum(units)::bigint from marts.unallocated_gpus where partition = 'p'", scope=SCOPE
    ).item()

    assert held + not_held == 20


def test_activity_without_an_allocation_is_listed(store):
    found = store.read(
        "select gpu_uuid, sum(end_ms - start_ms)::bigint as ms from marts.busy_unallocated "
        "group by gpu_uuid order by gpu_uuid"
    ).rows()

    (b, c) = found
    assert b == ("c/b#1", HOUR_MS)
    assert c[0] == "c/c#0"
    assert 1_700_000 < c[1] <= 1_800_000

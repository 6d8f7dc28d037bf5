"""What is asked of fleets, and the ledger of a made-up one against its truth."""

import json

import polars as pl
import pytest
from tests.queries import made_up_fleet
from tests.queries.conftest import START_MS, Evidence, built_once, read_from_world

from goodput_queries.check import check
from goodput_queries.ledger import capacity_ms, ledger
from goodput_queries.scope import EVERYTHING, Scope

HOUR_MS = 3_600_000
SCOPE = Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS)


@built_once
def world(made):
    """Give five nodes at the end of an hour, in two racks and no rack.

    a has two of four GPUs allocated, c all of them, b and d none; e is drained.
    """
    for node in "abcde":
        made.node(node, 4, partitions=("p", "q") if node == "b" else ("p",))
    racks = {"a": ("r1", "1A+1B"), "b": ("r1", "1A+1B"), "c": ("r2", None), "d": ("r2", "2A")}
    for node, (rack, feed) in racks.items():
        made.add("node_racks", node=node, rack=rack, rack_row="row 1", feed=feed)
    made.watched(HOUR_MS / 1000)
    made.state("e", "drained", 600, HOUR_MS / 1000)
    listed = {"observed_at": made.at(3600), "partition": "p"}
    made.job("7", 0, None, ["a"], 2, "RUNNING", **listed)
    made.job("8", 1800, None, ["c"], 4, "RUNNING", **listed)
    for job, submit, gpus, kind in (
        ("9", 3000, 16, None), ("10", 3100, 12, "h100"), ("11", 3100, 1, "a100"),
    ):  # fmt: skip
        made.job(job, None, None, [], None, "PENDING", submit=submit, gpus_requested=gpus,
                 gpu_type_requested=kind, **listed)  # fmt: skip
    use = {"engine_active_ratio": 0.5, "gpu_temperature_c": 60.0}
    for gpu, power_w, end in (("a#0", 300.0, 3541), ("c#0", 500.0, 1801), ("b#1", 100.0, 3601)):
        made.readings(f"c/{gpu}", range(0, end, 60), power_w=power_w, **use)
    made.xid("a", 79, 1000, gpu_uuid="c/a#1", message="off the bus")


SUMS = ", ".join(
    f"sum({name})::bigint"
    for name in ("gpus", "read_gpus", "capacity_ms", "held_ms", "useful_ms", "wasted_ms", "events")
)
SHOWN = {
    "nodes have their rack": (
        "select node, rack, feed from marts.nodes where node in ('a', 'e') order by 1",
        [("a", "r1", "1A+1B"), ("e", None, None)]),
    "GPUs have their rack": (
        "select distinct node, rack_row from marts.gpus where node in ('a', 'e') order by 1",
        [("a", "row 1"), ("e", None)]),
    "racks add up to their nodes": (
        f"select (select ({SUMS}) from marts.racks) = (select ({SUMS}) from marts.nodes), "
        "(select sum(capacity_ms)::bigint from marts.racks)", [(True, 20 * HOUR_MS)]),
    "a rack has the power of its nodes, and nodes without one are a row": (
        "select rack, nodes, power_w, events from marts.racks order by rack nulls first",
        [(None, 1, None, 0), ("r1", 2, 400.0, 1), ("r2", 2, 500.0, 0)]),
    "a rack has the feed of its nodes": (
        "select feed from marts.racks where rack = 'r2'", [("2A",)]),
    "a GPU has its run and last readings at the end": (
        "select run_id, runs, rack, power_w, engine_active_ratio, \"at\" from marts.gpu_states "
        "where gpu_uuid = 'c/a#0'", [("7", 1, "r1", 300.0, 0.5, Evidence.at(3600))]),
    "a GPU has its category and events": (
        "select gpu_uuid, category, events, (select count(*) from marts.gpu_states) "
        "from marts.gpu_states where gpu_uuid in ('c/b#0', 'c/e#0') order by 1",
        [("c/b#0", "idle_with_demand", 0, 20), ("c/e#0", "drained", 0, 20)]),
    "errors are of their GPU": (
        "select gpu_uuid, events from marts.gpu_states where events > 0", [("c/a#1", 1)]),
    "a reading of half an hour ago is no state": (
        "select power_w from marts.gpu_states where gpu_uuid = 'c/c#0'", [(None,)]),
    # the readings of c ended half an hour before
    "in the minutes after the last reading a job is as it was before": (
        "select gpu_uuid, category from marts.unit_states where gpu_uuid in ('c/a#0', 'c/c#0') "
        "order by 1", [("c/a#0", "busy_unclassified"), ("c/c#0", "unknown")]),
    "though the ledger has those minutes as unknown": (
        "select category from marts.ledger_pieces where gpu_uuid = 'c/a#0' "
        f"and end_ms = {START_MS + HOUR_MS}", [("unknown",)]),
    "free GPUs are counted in blocks that a job can have": (
        """select why, units, is_schedulable, blocks, largest_block, largest_rack_block
        from marts.unallocated_gpus where partition = 'p' order by why""",
        [("Node drained", 4, False, None, None, None), ("Part of a node", 2, True, 1, 2, None),
         ("Whole node", 8, True, 2, 8, 4)]),
    "what waits is counted by the GPUs it asks for": (
        """select partition, units, waiting_jobs, smallest_request from marts.unallocated_gpus
        where why = 'Whole node' order by 1""", [("p", 8, 2, 12), ("q", 4, 0, None)]),
    "every GPU is allocated or has a reason why not": (
        """select (select count(*) from marts.unit_states where "group" = 'held')
            + (select sum(units) from marts.unallocated_gpus where partition = 'p')""", [(20,)]),
    "activity without an allocation is listed": (
        """select gpu_uuid, ms = 3600000, ms > 1700000 and ms <= 1800000 from (
            select gpu_uuid, sum(end_ms - start_ms) as ms from marts.busy_unallocated group by all
        ) order by 1""",
        [("c/b#1", True, False), ("c/c#0", False, True)]),
    "the state is the one at the end of the window": (
        "select category, power_w from marts.gpu_states where gpu_uuid = 'c/c#0'",
        [("idle_no_demand", 500.0)], Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS // 4)),
}  # fmt: skip
test_what_is_shown_of_a_fleet = read_from_world({n: (*of, SCOPE)[:3] for n, of in SHOWN.items()})


INTERVAL_MS = 30_000
SHARE_OF_CATEGORY, SHARE_OF_CAPACITY = 0.02, 0.0005  # whichever is larger
OF_THE_SCHEDULER = (
    *("down", "maintenance", "drained", "powered_off", "reserved_idle", "stranded"),
    *("idle_with_demand", "idle_no_demand", "suspended"),
)


@pytest.fixture(scope="module")
def eventful(empty_database, tmp_path_factory):
    """Return the files of the fleet and its database."""
    return made_up_fleet.eventful(empty_database, tmp_path_factory)


@pytest.fixture(scope="module")
def fleet(eventful, module_store):
    return module_store(copy_of=eventful[1])


@pytest.fixture(scope="module")
def truth(eventful):
    frame = pl.read_parquet(eventful[0] / "truth.parquet")
    length = pl.col("end_ms") - pl.col("start_ms")
    return frame.with_columns((length * pl.col("slices") / 7).alias("gpu_ms"))


def by_category(fleet, scope=EVERYTHING):
    return dict(ledger(fleet, scope=scope).select("category", "gpu_ms").rows())


def by(column, frame):
    return dict(frame.group_by(column).agg(pl.col("gpu_ms").sum()).rows())


def gap_ends_ms(truth, category):
    """Return one sampling interval for each end of a stretch that readings alone decide."""
    if category not in ("idle_held", "busy_unclassified", "unknown"):
        return 0.0
    units = ("gpu_uuid", "gpu_instance")
    before = pl.col("expected").shift(1).over(units).alias("before")
    ends = truth.sort(*units, "start_ms").with_columns(before)
    mine = (pl.col("expected") == category) | (pl.col("before") == category)
    changes = ends.filter(mine & (pl.col("expected") != pl.col("before")))
    return float((changes["slices"] / 7).sum()) * INTERVAL_MS


def test_every_category_is_what_the_rules_make_of_the_plan(fleet, truth):
    """Capacity is conserved to the millisecond; what follows from the scheduler is exact."""
    found = by_category(fleet)
    expected = by("expected", truth)
    capacity = capacity_ms(fleet)
    assert sum(found.values()) == capacity == 64 * 6 * 3_600_000
    assert check(fleet)["violations"].sum() == 0

    off = {}
    for category in found.keys() | expected.keys():
        wanted = expected.get(category, 0.0)
        allowed = max(SHARE_OF_CATEGORY * wanted, SHARE_OF_CAPACITY * capacity)
        allowed += gap_ends_ms(truth, category)
        if category in OF_THE_SCHEDULER:
            allowed = 1_000
        if abs(found.get(category, 0) - wanted) > allowed:
            off[category] = (found.get(category, 0), wanted)
    assert off == {}


@pytest.mark.parametrize(("story", "categories"), [
    ("thermal-throttle", {"throttled", "straggler_wait"}), ("straggling-rank", {"straggler_wait"}),
    ("periodic-gaps", {"idle_held", "checkpoint_save"}), ("data-starved", {"data_stall"}),
    ("unused-allocation", {"idle_held"}), ("suspended", {"suspended"}),
    ("nccl-hang", {"fault_stall"}), ("out-of-memory", {"failed_without_progress"}),
    ("restart-in-job", {"lost_work", "fault_stall"}),
    ("measured", {"productive", "exposed_comm", "straggler_wait"}),
    ("saves-nobody-confirms", {"at_risk"}),
])  # fmt: skip
def test_each_story_is_in_its_own_run(fleet, truth, eventful, story, categories):
    notes = map(json.loads, (eventful[0] / "truth_notes.jsonl").read_text().splitlines())
    run = next(note["run_id"] for note in notes if note.get("story") == story)
    found = by_category(fleet, Scope(run=f"atlas/{run}"))
    of_run = truth.filter(pl.col("run_id") == run)
    expected = by("expected", of_run)

    assert categories <= found.keys()
    assert sum(found.values()) == pytest.approx(sum(expected.values()), abs=1_000)
    for category in categories:
        slack = gap_ends_ms(of_run, category)
        assert found[category] == pytest.approx(expected[category], rel=0.03, abs=slack), category

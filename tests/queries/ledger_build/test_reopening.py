"""An older hour in which something changed is recomputed, and comes out as a full build's."""

import pytest
from tests.queries.conftest import START_MS, built_file, built_once, copy_of
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build

from goodput_queries.ledger_build import passes

HOUR_S = 3600


@built_file
def built_two_nodes(evidence):
    """Return six hours of two nodes with a job each, read every minute; one node has meters."""
    for node in ("a", "b"):
        evidence.node(node, 2)
        evidence.job(f"job-{node}", 600, None, [node], 2, state="RUNNING")
        for index in range(2):
            seconds = evidence.every(0, 6 * HOUR_S, 60)
            evidence.samples(f"{node}#{index}", seconds, lambda second: second >= 600)
    minutes = evidence.every(0, 6 * HOUR_S, 60)
    for gpu in ("c/a#0", "c/a#1"):
        evidence.readings(gpu, minutes, "meters-of-gpus", energy_j=lambda second: 200.0 * second)
    evidence.host("a", minutes, "meter", power_w=1000.0)
    evidence.watched(6 * HOUR_S)


two_nodes = copy_of("built_two_nodes")
LEFT = {"gpu_uuid": "c/b#1", "slurm_index": 1, "gpu_index": 1, "valid_to_at": 2 * HOUR_S}
PLACED = {"source": "inventory", "node": "b", "gpu_model": "h100", "valid_from_at": 0}
# what turns out hours later
LATE = {
    "a job has ended": lambda c: c.job("job-a", 600, 2.5 * HOUR_S, ["a"], 2, state="FAILED"),
    "a node was down": lambda c: c.state("b", "down", 1.5 * HOUR_S, 1.6 * HOUR_S),
    "a GPU has left": lambda c: c.add("gpus", LEFT, **PLACED),
    "a node is new": lambda c: [c.node("d", 4), c.job("job-d", HOUR_S, 2 * HOUR_S, ["d"], 4)],
}
WALLS = "select sum(wall_mj) from marts.statement_energy_hourly where availability = 'held'"


@pytest.mark.parametrize(("late", "load"), LATE.items(), ids=LATE)
def test_what_turns_out_hours_later_gives_the_rows_of_a_full_build(two_nodes, late, load):
    """What a meter counts is shared again where time changed hands hours ago."""
    held_mj = two_nodes.store.read(WALLS).item()
    load(two_nodes)

    assert_equals_full_build(two_nodes)
    assert (two_nodes.store.read(WALLS).item() < held_mj) == (late == "a job has ended")


@built_once
def two_small_nodes(made):
    """Return a store that knows of a node of four GPUs and one of two."""
    made.node("a", 4)
    made.node("b", 2, watched=6 * HOUR_S)


BEGUN = START_MS // 3_600_000


@pytest.mark.parametrize(("hours", "expected"), [
    ({5, 6}, [(5, 7)]),
    ({5, 7}, [(5, 6), (7, 8)]),
    ({1, 2, 3, 4, 5}, [(1, 6)]),  # years before these nodes were there
    ({BEGUN, BEGUN + 1, BEGUN + 2}, [(BEGUN, BEGUN + 2), (BEGUN + 2, BEGUN + 3)]),
])  # fmt: skip
def test_a_pass_has_hours_in_a_row_of_gpus_that_are_present(two_small_nodes, hours, expected):
    with two_small_nodes.store.cursor() as cursor:
        assert passes.passes(cursor, hours, most_gpu_hours=12) == expected

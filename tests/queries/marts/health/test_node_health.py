"""Nodes ranked by what they cost: whose fault an attempt was, and what to do with the node."""

from tests.queries.conftest import START_MS, built_once, each, read_from_world, steps
from tests.tables import table

from goodput_queries.scope import Scope

BUS = "00000000:19:00.0"


@built_once
def world(made):
    """Nodes a to e with a GPU each; the price is 36 a GPU-hour: 0.01 a GPU-second.

    A gang on a, b and c loses 100 s of steps when a GPU of a falls off the bus. A job on d fails
    with its node twice. Node e repairs no memory any more.
    """
    for node in "abcde":
        made.listed(node, f"GPU-{node}", pci_bus_id=BUS)
    made.add("rates", source="rates", price_per_gpu_h=36, cluster=None)
    made.watched(1_000)
    made.job("gang", 0, 130, ["a", "b", "c"], 3, "FAILED")
    made.events("gang", steps(1, 10, 0), host="a")
    made.xid("a", 79, 120, pci_bus_id=BUS, cluster=None)
    for job, start in (("d1", 0), ("d2", 400)):
        made.job(job, start, start + 200, ["d"], 1, "NODE_FAIL")
        made.state("d", "down", start + 200, start + 300)
    made.job("own", 600, 700, ["b"], 1, "FAILED")
    made.xid("b", 31, 699, pci_bus_id=BUS, cluster=None)
    made.counted("GPU-e", "row_remap_failed", [(0, 1), (60, 1)])
    made.counted("GPU-e", "rows_remapped_uncorrectable_total", [(0, 0), (60, 1)])


# node, from second; its columns
@each(table(__file__, "test_health_of_a_node"))
def test_health_of_a_node(world, name, from_s, expected):
    sql = f"select {', '.join(expected)} from marts.node_health where node = $1"
    scope = Scope(from_ms=START_MS + 1000 * from_s if from_s else None)
    assert world.store.read(sql, [name], scope=scope, is_kept=True).to_dicts() == [expected]


test_health_of_the_fleet = read_from_world(table(__file__, "test_health_of_the_fleet"))

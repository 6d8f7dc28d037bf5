"""Nodes ranked by what they cost: whose fault an attempt was, and what to do with the node."""

from tests.queries.conftest import START_MS, built_once, each, read_from_world, steps

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
@each({
    # three GPUs for 130 s: nothing of it was saved
    "the node of the fault has all that its gang lost": (
        "a", 0,
        {"failed_attempts": 1, "caused_ms": 390_000, "lost_ms": 130_000, "code": 79,
         "verdict": "Drain", "verdict_reason": "1 error, of which one asks for it",
         "row_remaps": None, "remap_failed_gpus": None, "thermal_s": None}),
    "another node of the gang; an attempt failed by its own fault": (
        "b", 0,
        {"failed_attempts": 0, "errors": 0, "caused_ms": 0, "caused_cost": 0, "lost_ms": 130_000,
         "verdict": None}),
    "the last node of the gang": (
        "c", 0,
        {"failed_attempts": 0, "lost_ms": 130_000, "verdict": None, "verdict_reason": None}),
    "what attempts lost that report no steps is not known": (
        "d", 0,
        {"caused_ms": None, "caused_cost": None, "failures": 2, "down_ms": 200_000,
         "verdict": "Drain", "verdict_reason": "2 failed attempts"}),
    "the window decides which attempts count": (
        "d", 300, {"failed_attempts": 1, "failures": 1, "verdict": None}),
    "what was read is a number": (
        "e", 0,
        {"row_remaps": 1, "remap_failed_gpus": 1, "verdict": "Replace",
         "verdict_reason": "row remap failed on 1 GPU"}),
})  # fmt: skip
def test_health_of_a_node(world, name, from_s, expected):
    sql = f"select {', '.join(expected)} from marts.node_health where node = $1"
    scope = Scope(from_ms=START_MS + 1000 * from_s if from_s else None)
    assert world.store.read(sql, [name], scope=scope, is_kept=True).to_dicts() == [expected]


test_health_of_the_fleet = read_from_world({
    "what the gang lost has its cost and the fix is the vendor's": (
        "select round(caused_cost, 6), left(what_to_do, 29) from marts.node_health "
        "where node = 'a'", [(3.9, "Drain the node and restart it")]),
    "waste on the nodes adds up to the infrastructure-caused waste of the fleet": (
        """select lost > 0, lost = ms, round(lost_cost - cost, 6) = 0 from (
            select sum(lost_ms) as lost, sum(lost_cost) as lost_cost from marts.node_health
        ), (
            select sum(gpu_ms) as ms, sum(cost) as cost from marts.ledger_blamed_by_node
            where blame = 'platform'
        )""", [(True, True, True)]),
    "the node that cost most comes first": (
        "select node from marts.node_health order by place limit 2", [("a",), ("d",)]),
})  # fmt: skip

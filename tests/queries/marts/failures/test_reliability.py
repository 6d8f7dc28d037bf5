"""Time between failures of nodes and of attempts by job size; outages; drivers."""

import pytest
from tests.queries.conftest import START_MS, at, built_once, read_from_world

from goodput_queries.scope import Scope

BUS = "00000000:19:00.0"
OLD_DRIVER, NEW_DRIVER = "570.1", "580.2"


def gpu(made, node, driver, second=0.0, vbios=None):
    of = {"driver_version": driver, "vbios_version": vbios, "valid_from_at": second}
    made.listed(node, f"GPU-{node}", "dcgm", pci_bus_id=BUS, **of)


def listing(made, node, state, second, cluster="c"):
    """Load what a listing of nodes shows: a state at a moment."""
    of = {"source": "slurm", "cluster": cluster, "start_at": second, "end_at": second}
    made.add("node_states", node=node, state=state, **of)


@built_once
def world(made):
    """Three nodes for an hour; a gets a new driver after half of it. Only cluster c is watched."""
    gpu(made, "a", OLD_DRIVER, vbios="96.00.01")
    gpu(made, "b", OLD_DRIVER, vbios="96.00.01")
    gpu(made, "a", NEW_DRIVER, 1_800)
    for cluster, node in (("c", "n"), ("x", "y"), ("l", "z")):
        made.listed(node, f"GPU-{node}", cluster=cluster)
    for second in (0, 60, 120, 4_000, 4_060, 8_000, 8_060):
        listing(made, "z", "drained" if 60 < second < 4_060 else "up", second, "l")
    made.readings("GPU-y", (0, 60), "test", power_w=70.0)
    made.watched(3_600)
    made.state("a", "down", 100, 400)
    made.add("node_states", source="node-states", node="a", state="down", start_at=300, end_at=600,
             reason="fan")  # fmt: skip
    made.state("a", "down", 2_000, 2_000)  # over at once
    made.state("b", "drained", 500, 900)
    for second, state in ((1_000, "down"), (1_060, "down"), (1_120, "up"), (1_180, "down")):
        listing(made, "b", state, second)
    for number, state in enumerate(("COMPLETED", "NODE_FAIL", "PREEMPTED", "FAILED")):
        made.job(str(number), 1_000 * number, 1_000 * number + 500, ["n"], 1, state)
    made.job("pair", 0, 3_600, ["a", "b"], 2)
    made.xid("a", 79, 1_700, pci_bus_id=BUS, cluster=None)
    made.xid("a", 79, 2_600, pci_bus_id=BUS, cluster=None)


def near(value):
    return pytest.approx(value, rel=1e-6)


UP_S = 3 * 3_600 - 500 - 60
OF_SIZE = "gpu_ms, failures, mtbf_s, mtbf_low_s, mtbf_high_s from marts.reliability_by_job_size"
# what it shows: the query, its rows, its scope
test_outages_and_failures = read_from_world({
    "states that overlap are one outage whoever reports them": (
        "select start_at, end_at, reports, reason, sources from marts.node_outages "
        "where node = 'a' order by start_at limit 1",
        [(at(100), at(600), 2, "fan", "node states, test")]),
    "an outage that is over at once counts": (
        "select outage_ms from marts.node_outages where node = 'a' order by 1", [(0,), (500_000,)]),
    "listings that show the same state are one outage": (
        "select start_at, end_at from marts.node_outages "
        "where node = 'b' and state = 'down' order by start_at",
        [(at(1_000), at(1_060)), (at(1_180), at(1_180))]),
    "a listed state lasts to the next listing, over an hour only out of service": (
        "select category, sum(end_ms - start_ms) // 1000 from intermediate.int_ledger_segments "
        "where cluster = 'l' group by category order by category",
        [("drained", 3_940), ("free_unknown", 3_940), ("idle_no_demand", 180)]),
    "a drained node is an outage, of listings until the next one": (
        "select start_at, end_at, is_over from marts.node_outages where node = 'z'",
        [(at(120), at(4_060), True)]),
    "a drained node is no failure": (
        "select failures from marts.fleet_reliability where cluster = 'c'", [(4,)]),
    "without node states it is not known how often nodes fail": (
        "select has_states, failures, mtbf_s from marts.fleet_reliability where cluster = 'x'",
        [(False, None, None)]),
    "an outage that began before the window is no failure in it": (
        "select failures, down_ms from marts.fleet_reliability where cluster = 'c'", [(0, 300_000)],
        Scope(from_ms=START_MS + 200_000, to_ms=START_MS + 500_000)),
    "a preemption is no failure": (
        "select cause from marts.reliability_by_cause where cluster = 'c' order by cause",
        [("FAILED",), ("NODE_FAIL",)]),
    "the window cuts run time and counts the failures in it": (
        "select run_ms, failures from marts.reliability_by_job_size where gpus_to = 1",
        [(750_000, 0)], Scope(to_ms=START_MS + 1_250_000)),
    "an incident counts for the driver that the GPU had then": (
        "select driver_version, vbios_version, gpus, gpu_ms, errors, "
        "round(errors_per_1000_gpu_h, 6) from marts.driver_versions where cluster = 'c' "
        "order by driver_version",
        [
            (OLD_DRIVER, "96.00.01", 2, 5_400_000, 1, 666.666667),
            (NEW_DRIVER, "96.00.01", 1, 1_800_000, 1, 2_000),
            (None, None, 1, 3_600_000, 0, 0),  # nobody reports it
        ]),
    "time between failures is time not down over failures": (
        "select nodes, node_ms, mtbf_s, mtbf_low_s, mtbf_high_s, mttr_s "
        "from marts.fleet_reliability where cluster = 'c'",
        [(3, 3 * 3_600_000, *map(near, (UP_S / 4, UP_S / 10.241589, UP_S / 1.089866, 560 / 4)))]),
    # preemption is a policy, FAILED the job's own end: one failure in four attempts
    "attempts fail where the infrastructure is the cause": (
        f"select attempts, {OF_SIZE} where gpus_from = 1",
        [(4, 2_000_000, 1, 2_000, near(2_000 / 5.571643), near(2_000 / 0.0253178))]),
    "sizes are counted up to powers of two and without a failure the interval is open": (
        f"select gpus_to, {OF_SIZE} where gpus_from = 2",
        [(2, 7_200_000, 0, None, near(3_600 / 3.688879), None)]),
    "attempts fail at an age": (
        "select age, attempts, run_ms, failures, other_failures "
        "from marts.reliability_by_job_age where cluster = 'c' order by age_from_s",
        [("under 10 min", 5, 2_600_000, 1, 1), ("10 min to 1 h", 1, 3_000_000, 0, 0)]),
    # Garwood 1936; Ulm 1990, table 1
    **{f"the interval of {counted} events is the exact one": (
           f"select poisson_low({counted}), poisson_high({counted})",
           [(pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))])
       for counted, low, high in ((0, 0.0, 3.688879), (1, 0.025318, 5.571643),
                                  (10, 4.795389, 18.390356), (50, 37.110964, 65.918767),
                                  (1_000, 938.973018, 1_063.952136))},
})  # fmt: skip

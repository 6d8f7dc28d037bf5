"""Time between failures of nodes and of attempts by job size; outages; drivers."""

import pytest
from tests.queries.conftest import START, START_MS, at

from goodput_queries.scope import Scope

BUS = "00000000:19:00.0"
OLD_DRIVER, NEW_DRIVER = "570.1", "580.2"


def gpu(made, node, driver, second=0.0, vbios=None):
    made.add(
        "gpus", source="dcgm", node=node, gpu_uuid=f"GPU-{node}", gpu_index=0, pci_bus_id=BUS,
        gpu_model="h100", driver_version=driver, vbios_version=vbios, valid_from_at=second,
    )  # fmt: skip


def listing(made, node, state, second):
    """Load what a listing of nodes shows: a state at a moment."""
    made.add("node_states", source="slurm", node=node, state=state, start_at=second, end_at=second)


@pytest.fixture(scope="module")
def world(shared_evidence):
    """Three nodes for an hour; a gets a new driver after half of it. A cluster x is not watched."""
    made = shared_evidence
    gpu(made, "a", OLD_DRIVER, vbios="96.00.01")
    gpu(made, "b", OLD_DRIVER, vbios="96.00.01")
    gpu(made, "a", NEW_DRIVER, 1_800)
    made.load("gpus", [
        {"cluster": cluster, "node": node, "gpu_uuid": f"GPU-{node}", "valid_from_at": START}
        for cluster, node in (("c", "n"), ("x", "y"))
    ], "inventory")  # fmt: skip
    made.add(
        "gpu_samples", *({"ts": s} for s in (0, 60)), gpu_uuid="GPU-y", gpu_instance="",
        power_w=70.0,
    )  # fmt: skip
    made.watched(3_600)
    made.state("a", "down", 100, 400)
    made.add(
        "node_states", source="node-states", node="a", state="down", start_at=300, end_at=600,
        reason="fan",
    )  # fmt: skip
    made.state("a", "down", 2_000, 2_000)  # over at once
    made.state("b", "drained", 500, 900)
    for second, state in ((1_000, "down"), (1_060, "down"), (1_120, "up"), (1_180, "down")):
        listing(made, "b", state, second)
    for number, state in enumerate(("COMPLETED", "NODE_FAIL", "PREEMPTED", "FAILED")):
        made.job(str(number), 1_000 * number, 1_000 * number + 500, ["n"], 1, state)
    made.job("pair", 0, 3_600, ["a", "b"], 2)
    made.xid("a", 79, 1_700, pci_bus_id=BUS, cluster=None)
    made.xid("a", 79, 2_600, pci_bus_id=BUS, cluster=None)
    made.build()
    return made


def rows(world, select, **scope):
    return world.store.read(select, scope=Scope(**scope)).rows()


@pytest.mark.parametrize(
    ("counted", "low", "high"),
    [
        (0, 0.0, 3.688879),  # Garwood 1936; Ulm 1990, table 1
        (1, 0.025318, 5.571643),
        (10, 4.795389, 18.390356),
        (50, 37.110964, 65.918767),
        (1_000, 938.973018, 1_063.952136),
    ],
)
def test_the_interval_of_a_number_of_events_is_the_exact_one(world, counted, low, high):
    found = rows(world, f"select poisson_low({counted}), poisson_high({counted})")

    assert found[0] == pytest.approx((low, high), abs=1e-6)


# what it shows: the query, its scope, its rows
ROWS = {
    "states that overlap are one outage whoever reports them": (
        "select start_at, end_at, reports, reason, sources from marts.node_outages "
        "where node = 'a' order by start_at limit 1", {},
        [(at(100), at(600), 2, "fan", "node states, test")],
    ),
    "an outage that is over at once counts": (
        "select outage_ms from marts.node_outages where node = 'a' order by 1", {},
        [(0,), (500_000,)],
    ),
    "listings that show the same state are one outage": (
        "select start_at, end_at from marts.node_outages "
        "where node = 'b' and state = 'down' order by start_at", {},
        [(at(1_000), at(1_060)), (at(1_180), at(1_180))],
    ),
    "a drained node is an outage": (
        "select state from marts.node_outages where node = 'b' order by state", {},
        [("down",), ("down",), ("drained",)],
    ),
    "a drained node is no failure": (
        "select failures from marts.fleet_reliability where cluster = 'c'", {}, [(4,)],
    ),
    "without node states it is not known how often nodes fail": (
        "select has_states, failures, mtbf_s from marts.fleet_reliability where cluster = 'x'",
        {}, [(False, None, None)],
    ),
    "an outage that began before the window is no failure in it": (
        "select failures, down_ms from marts.fleet_reliability where cluster = 'c'",
        {"from_ms": START_MS + 200_000, "to_ms": START_MS + 500_000}, [(0, 300_000)],
    ),
    "a preemption is no failure": (
        "select cause from marts.reliability_by_cause where cluster = 'c' order by cause", {},
        [("FAILED",), ("NODE_FAIL",)],
    ),
    "the window cuts run time and counts the failures in it": (
        "select run_ms, failures from marts.reliability_by_job_size where gpus_to = 1",
        {"to_ms": START_MS + 1_250_000}, [(750_000, 0)],
    ),
    "an incident counts for the driver that the GPU had then": (
        "select driver_version, vbios_version, gpus, gpu_ms, errors, "
        "round(errors_per_1000_gpu_h, 6) from marts.driver_versions where cluster = 'c' "
        "order by driver_version", {},
        [
            (OLD_DRIVER, "96.00.01", 2, 5_400_000, 1, 666.666667),
            (NEW_DRIVER, "96.00.01", 1, 1_800_000, 1, 2_000),
            (None, None, 1, 3_600_000, 0, 0),  # nobody reports it
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "scope", "expected"), ROWS.values(), ids=ROWS)
def test_outages_and_failures(world, sql, scope, expected):
    assert rows(world, sql, **scope) == expected


def test_time_between_failures_is_time_not_down_over_failures(world):
    (found,) = world.store.read(
        "select * from marts.fleet_reliability where cluster = 'c'"
    ).to_dicts()

    up_s = 3 * 3_600 - 500 - 60
    assert (found["nodes"], found["node_ms"]) == (3, 3 * 3_600_000)
    assert found["mtbf_s"] == pytest.approx(up_s / 4)
    assert found["mtbf_low_s"] == pytest.approx(up_s / 10.241589, rel=1e-6)
    assert found["mtbf_high_s"] == pytest.approx(up_s / 1.089866, rel=1e-6)
    assert found["mttr_s"] == pytest.approx((500 + 0 + 60 + 0) / 4)


def test_attempts_fail_where_the_infrastructure_is_the_cause(world):
    """Preemption is a policy, FAILED the job's own end: one failure in four attempts."""
    found = rows(
        world,
        "select attempts, run_ms, gpu_ms, failures, mtbf_s, mtbf_low_s, mtbf_high_s "
        "from marts.reliability_by_job_size where gpus_from = 1",
    )

    assert found[0][:5] == (4, 2_000_000, 2_000_000, 1, 2_000)
    assert found[0][5:] == pytest.approx((2_000 / 5.571643, 2_000 / 0.0253178), rel=1e-6)


def test_sizes_are_counted_up_to_powers_of_two_and_without_a_failure_the_interval_is_open(world):
    found = rows(
        world,
        "select gpus_from, gpus_to, gpu_ms, failures, mtbf_s, mtbf_low_s, mtbf_high_s "
        "from marts.reliability_by_job_size where gpus_to = 2",
    )

    assert found[0][:5] == (2, 2, 7_200_000, 0, None)
    assert found[0][5] == pytest.approx(3_600 / 3.688879, rel=1e-6)
    assert found[0][6] is None

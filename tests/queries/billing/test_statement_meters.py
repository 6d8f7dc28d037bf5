"""A node's power meter on its statement lines: shared by what GPUs counted, then by time."""

import pytest
from tests.queries.conftest import built_together
from tests.queries.loaders import steady

HOUR_S = 3_600


def meter(evidence, node, begin, end, watts, every=60):
    """Load a node's power meter: readings that cover back to the one before them."""
    evidence.add(
        "node_samples", *({"ts": second} for second in range(begin, end + 1, every)),
        source="meter", node=node, power_w=float(watts),
    )  # fmt: skip


def metered(evidence):
    """Load a node of 2 GPUs at 100 W and 300 W, that take 1,000 W at its meter for 4 hours."""
    evidence.node("a", 2)
    evidence.watched(5 * HOUR_S)
    evidence.job("1", 0, 2 * HOUR_S, ["a"], 1, account="A")
    evidence.energy(evidence.gpu("a#0"), steady(5 * HOUR_S, 100))
    evidence.energy(evidence.gpu("a#1"), steady(5 * HOUR_S, 300))
    evidence.tariff("0.1", "1.5", "2")


def energies(evidence):
    """Return kWh of counters and of meters, and what they cost, by line."""
    found = evidence.read(
        "select line, energy_mj / 3.6e9, wall_mj / 3.6e9, (metered_mj_price / 3.6e9)::double "
        "from (select line, sum(energy_mj) as energy_mj, sum(wall_mj) as wall_mj, "
        "sum(metered_mj_price) as metered_mj_price from marts.statement_lines group by line)"
    )
    return {line: pytest.approx(values) for line, *values in found.rows()}


# of 1,000 W 400 W are the GPUs' own; 600 W are the server's: 300 W for each of two GPUs
METERS = {
    "shared by what GPUs counted and the rest by their time": (
        (0, 1_000), {"usage": [0.2, 0.8, 0.8 * 0.1 * 1.5], "idle": [1.8, 4.2, 4.2 * 0.1 * 1.5]},
    ),
    "hours that it does not cover whole are those of the counters": (
        (1_800, 1_000), {"usage": [0.2, 0.4, 0.1 * 0.1 * 1.5 * 2 + 0.4 * 0.1 * 1.5]},
    ),
    "a meter that counts less than its GPUs is not believed": (
        (0, 399), {"usage": [0.2, None, 0.2 * 0.1 * 1.5 * 2]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("read", "expected"), METERS.values(), ids=METERS)
@built_together
def test_a_nodes_meter(cluster, read, expected):
    begin, watts = read
    metered(cluster)
    meter(cluster, "a", begin, 5 * HOUR_S, watts)
    yield
    assert energies(cluster).items() >= expected.items()


@built_together(builds=2)
def test_a_meter_that_comes_later_than_the_build_is_seen_by_the_next(cluster):
    metered(cluster)
    yield
    assert energies(cluster)["usage"] == [0.2, None, 0.2 * 0.1 * 1.5 * 2]
    meter(cluster, "a", 0, 5 * HOUR_S, 1_000)
    yield
    assert energies(cluster)["usage"] == [0.2, 0.8, 0.8 * 0.1 * 1.5]


# what it shows: GPUs of the node; start, end and GPUs of its job; when the meter of 700 W is read;
# seconds of the meter by line
ALONE = {
    "it is shared by time": (
        3, (0, HOUR_S, 2), [(0, 2 * HOUR_S)], {"idle": HOUR_S * 4 // 3, "usage": HOUR_S * 2 // 3},
    ),
    # a minute before the job and one after it nobody held them
    "a job has its energy though it covers no whole hour": (
        2, (3_000, 4_200, 2), [(2_940, 4_260)], {"idle": 120, "usage": 1_200},
    ),
    "it counts the part of a job that it covers": (
        1, (0, 2 * HOUR_S, 1), [(0, 600), (5_400, 2 * HOUR_S)], {"usage": 600 + 1_800},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("gpus", "job", "read", "expected"), ALONE.values(), ids=ALONE)
@built_together
def test_a_meter_alone(cluster, gpus, job, read, expected):
    start, end, held = job
    cluster.node("a", gpus)
    cluster.watched(2 * HOUR_S)
    cluster.job("1", start, end, ["a"], held, account="A")
    for first, last in read:
        meter(cluster, "a", first, last, 700)
    yield
    found = cluster.read(
        "select line, sum(energy_mj), sum(wall_mj) from marts.statement_lines group by all "
        "having sum(wall_mj) > 0"
    )
    assert {line: wall for line, _, wall in found.rows()} == {
        line: 700_000 * seconds for line, seconds in expected.items()
    }
    assert set(found["sum(energy_mj)"]) == {None}

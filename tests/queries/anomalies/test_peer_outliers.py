"""GPUs that differ from their gang, and nodes that differ from others of their model."""

import pytest
from tests.queries.anomalies.conftest import BUSY, IDLE, Gpus
from tests.queries.conftest import built_together

HOUR = 3_600
GANG = 8


def gang(gpus, odd, *, size=GANG, end=HOUR, exact=False):
    """Load a job of some GPUs, the last of which has other values (of a second, or of all)."""
    gpus.node("a", size)
    gpus.evidence.job("1", 0, end, ["a"], size)
    for i in range(size - 1):
        gpus.read(f"a/{i}", end, {**BUSY, "gpu_temperature_c": 58.0 + i, "power_w": 590.0 + 4 * i})
    gpus.read(f"a/{size - 1}", end, odd, exact=exact)


def nodes(gpus, odd, *, count=6, usual=IDLE):
    """Load nodes without a job, the last of which has other values."""
    for n in range(count):
        gpus.node(f"n{n}", 2)
        values = {**usual, "power_w": usual["power_w"] + n, **(odd if n == count - 1 else {})}
        for i in range(2):
            gpus.read(f"n{n}/{i}", HOUR, values)
    gpus.evidence.watched(HOUR)


@pytest.mark.fires("peer_power", "peer_sm_clock", "peer_sm_active", "peer_temperature")
@pytest.mark.parametrize(
    ("rule", "odd", "text"),
    [
        ("peer_power", {"power_w": 400.0}, "power 400 W, median of the others 6"),
        ("peer_sm_clock", {"sm_clock_hz": 1.2e9}, "SM clock 1200 MHz, median of the others 1980"),
        ("peer_sm_active", {"sm_active_ratio": 0.4}, "SM active 40.0 %, median of the others 80"),
        ("peer_temperature", {"gpu_temperature_c": 85.0}, "temperature 86 °C, median of the othe"),
    ],
)
@built_together
def test_a_gpu_that_differs_from_its_gang_is_found(cluster, rule, odd, text):
    gpus = Gpus(cluster)
    gang(gpus, {**BUSY, **odd})
    yield
    (row,) = gpus.found("peer_outliers")

    assert (row["rule"], row["gpu_uuid"], row["peers"]) == (rule, "a/7", 7)
    assert row["evidence"].startswith(text)
    assert (row["bins"], row["of_bins"]) == (5, 5)  # the first ten minutes are start-up
    assert row["score"] >= 5


@pytest.mark.parametrize(("hot_s", "expected"), [((2 * HOUR, 3 * HOUR), ["a/7"]), ((0, 0), [])])
@built_together
def test_a_gpu_is_as_warm_as_its_place_unless_it_becomes_warmer(cluster, hot_s, expected):
    """Places of this server differ by 4 °C each: the spread hides what only one of them does."""
    gpus = Gpus(cluster)
    gpus.node("a", GANG)
    cluster.job("1", 0, 4 * HOUR, ["a"], GANG)
    for i in range(GANG - 1):
        gpus.read(f"a/{i}", 4 * HOUR, {**BUSY, "gpu_temperature_c": 52.0 + 4 * i})

    def last(second):
        rise = 22.0 if hot_s[0] <= second < hot_s[1] else 0.0
        return {**BUSY, "gpu_temperature_c": 60.0 + rise}

    gpus.read(f"a/{GANG - 1}", 4 * HOUR, last)
    yield
    found = gpus.found("peer_outliers")

    assert [row["gpu_uuid"] for row in found] == expected
    assert {row["rule"] for row in found} <= {"peer_temperature"}


@built_together
def test_a_gpu_that_waits_is_one_finding_though_all_of_it_differs(cluster):
    gpus = Gpus(cluster)
    gang(gpus, IDLE)
    yield
    assert [row["rule"] for row in gpus.found("peer_outliers")] == ["peer_sm_active"]


def low_power(is_low):
    """Return readings with half the power in some of the times of ten minutes."""
    return lambda second: {**BUSY, "power_w": 300.0 if is_low(second // 600) else 600.0}


@pytest.mark.quiet("peer_power", "peer_sm_clock", "peer_temperature")
@pytest.mark.parametrize(
    ("odd", "size"),
    [
        pytest.param({**BUSY, "gpu_temperature_c": 40.0}, GANG, id="cooler than the others"),
        pytest.param({**BUSY, "sm_clock_hz": 2.2e9}, GANG, id="faster than the others"),
        pytest.param({**BUSY, "power_w": 640.0}, GANG, id="a little more power"),
        pytest.param(low_power(lambda place: place == 2), GANG, id="ten minutes alone"),
        pytest.param(low_power(lambda place: place % 2), GANG, id="ten minutes now and then"),
        pytest.param({**BUSY, "power_w": 300.0}, 4, id="too few peers in a gang of four"),
    ],
)
@built_together
def test_other_gpus_of_a_gang_are_no_finding(cluster, odd, size):
    gpus = Gpus(cluster)
    gang(gpus, odd, size=size)
    yield
    assert gpus.found("peer_outliers") == []


@pytest.mark.parametrize(
    ("stale", "rule"),
    [
        pytest.param(
            lambda _: {"power_w": 245.0, "energy_j": 5e6, "sm_clock_hz": 1e9},
            "frozen_series", id="all of it",
        ),
        pytest.param(
            lambda second: {"power_w": 245.0, "sm_active_ratio": 0.95 - 0.4 * (second // 600 % 2)},
            "standing_power", id="power while the activity changes",
        ),
    ],
)  # fmt: skip
@built_together
def test_readings_that_stand_still_are_compared_with_nobody(cluster, stale, rule):
    """They are what the GPU was before, and have a finding of their own."""
    gpus = Gpus(cluster)
    gang(
        gpus,
        lambda second: {**BUSY, "gpu_temperature_c": 60 + second % 7, **stale(second)},
        exact=True,
    )
    yield
    assert gpus.found("peer_outliers") == []
    assert [row["rule"] for row in gpus.found("standing_counters")] == [rule]


@built_together
def test_half_an_hour_of_a_longer_run_is_found(cluster):
    """A GPU that is throttled for a part of the run."""
    gpus = Gpus(cluster)
    gang(
        gpus,
        lambda second: {**BUSY, "sm_clock_hz": 1.2e9 if 3600 <= second < 5400 else 1.98e9},
        end=4 * HOUR,
    )
    yield
    (row,) = gpus.found("peer_outliers", "rule, start_at, end_at, bins, of_bins, gpu_ms")

    assert row == {
        "rule": "peer_sm_clock", "start_at": gpus.evidence.at(3600),
        "end_at": gpus.evidence.at(5400), "bins": 3, "of_bins": 23, "gpu_ms": 1_800_000,
    }  # fmt: skip


@pytest.mark.quiet("peer_sm_active")
@built_together
def test_a_gang_that_differs_from_ten_minutes_to_ten_minutes_is_compared_in_each(cluster):
    """All GPUs idle in every other ten minutes: none differs from the others."""
    gpus = Gpus(cluster)
    gpus.node("a", GANG)
    gpus.evidence.job("1", 0, HOUR, ["a"], GANG)
    for i in range(GANG):
        gpus.read(f"a/{i}", HOUR, lambda second: BUSY if second // 600 % 2 else IDLE)
    yield
    assert gpus.found("peer_outliers") == []


@pytest.mark.fires("node_idle_power", "node_temperature")
@pytest.mark.parametrize(
    ("rule", "odd"),
    [("node_idle_power", {"power_w": 130.0}), ("node_temperature", {"gpu_temperature_c": 55.0})],
)
@built_together
def test_a_node_that_differs_from_its_model_is_found(cluster, rule, odd):
    gpus = Gpus(cluster)
    nodes(gpus, odd)
    yield
    (row,) = gpus.found("peer_outliers", "rule, node, gpu_uuid, peers, gpu_ms")

    assert row == {
        "rule": rule, "node": "n5", "gpu_uuid": None, "peers": 5, "gpu_ms": 2 * 7 * 600_000,
    }  # fmt: skip


@pytest.mark.quiet("node_idle_power", "node_temperature")
@built_together
def test_a_node_at_work_is_compared_with_nodes_at_work(cluster):
    """A busy node is warmer than idle ones."""
    gpus = Gpus(cluster)
    nodes(gpus, BUSY)
    yield
    assert gpus.found("peer_outliers") == []

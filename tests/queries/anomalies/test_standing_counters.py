"""Series that stand still while their GPU works, and readings that are rejected."""

import pytest
from tests.queries.anomalies.conftest import BUSY, IDLE, Gpus
from tests.queries.conftest import built_together

HOUR = 3_600


def varied(second, **more):
    """Return readings of a GPU whose load goes up and down."""
    low = second // 60 % 3 == 0
    follows = {"sm_active_ratio": 0.2, "power_w": 300.0, "gpu_temperature_c": 51.0} if low else {}
    return {**BUSY, **follows, **more}


def held(gpus, values, *, exact=True):
    gpus.node("a", 1)
    gpus.evidence.job("1", 0, HOUR, ["a"], 1)
    gpus.read("a/0", HOUR, values, exact=exact)


def found(gpus):
    return gpus.found("standing_counters", "rule, samples, confidence, evidence")


@pytest.mark.fires("standing_energy")
@built_together
def test_an_energy_counter_that_gains_nothing_at_power_stands_still(cluster):
    gpus = Gpus(cluster)
    held(gpus, lambda second: varied(second, energy_j=5e6))
    yield
    (row,) = found(gpus)

    assert (row["rule"], row["samples"], row["confidence"]) == (
        "standing_energy", 120, "Confirmed",
    )  # fmt: skip
    assert row["evidence"].startswith("the energy counter stood still at a mean power of 500 W")


@pytest.mark.fires("standing_power")
@built_together
def test_power_that_does_not_follow_the_load_stands_still(cluster):
    gpus = Gpus(cluster)
    held(gpus, lambda second: varied(second, power_w=431.0))
    yield
    (row,) = found(gpus)

    assert (row["rule"], row["confidence"]) == ("standing_power", "Likely")
    assert row["evidence"] == (
        "power stood at 431.0 W, 120 samples; activity changed by 60 % meanwhile"
    )


@pytest.mark.fires("standing_temperature")
@built_together
def test_temperature_that_does_not_follow_the_load_for_an_hour_stands_still(cluster):
    gpus = Gpus(cluster)
    held(gpus, lambda second: varied(second, gpu_temperature_c=62.0))
    yield
    rows = found(gpus)

    assert [row["rule"] for row in rows] == ["standing_temperature"]


@pytest.mark.fires("frozen_series")
@built_together
def test_power_and_energy_that_stand_still_are_a_frozen_series(cluster):
    """A stalled host engine repeats its last values: that is not idle, and not work."""
    gpus = Gpus(cluster)
    held(gpus, {**BUSY, "energy_j": 5e6})
    yield
    (row,) = found(gpus)

    assert (row["rule"], row["confidence"]) == ("frozen_series", "Confirmed")


@pytest.mark.fires("stuck_profiling")
@built_together
def test_no_engine_activity_at_full_utilisation_is_a_broken_counter(cluster):
    gpus = Gpus(cluster)
    gpus.node("b", 1)
    gpus.evidence.job("2", 0, HOUR, ["b"], 1)
    gpus.read("b/0", HOUR, IDLE)
    stuck = {"engine_active_ratio": 0.0, "sm_active_ratio": 0.0}
    held(gpus, {**BUSY, **stuck}, exact=False)
    yield
    (row,) = found(gpus)

    assert (row["rule"], row["confidence"]) == ("stuck_profiling", "Likely")


@pytest.mark.fires("rejected_values")
@built_together
def test_rejected_values_are_counted(cluster):
    gpus = Gpus(cluster)
    held(
        gpus, lambda second: varied(second, is_flagged=second % 300 == 0), exact=False
    )  # fmt: skip
    yield
    (row,) = found(gpus)

    assert (row["rule"], row["samples"]) == ("rejected_values", 12)


@pytest.mark.quiet(
    "standing_energy",
    "standing_power",
    "standing_temperature",
    "frozen_series",
    "stuck_profiling",
    "rejected_values",
)
@pytest.mark.parametrize(
    ("values", "exact"),
    [
        pytest.param(BUSY, False, id="steady load"),
        pytest.param(IDLE, False, id="idle"),
        pytest.param({**BUSY, "power_w": 700.0}, True, id="at its power limit, energy goes on"),
        pytest.param(
            lambda second: {**BUSY, "is_flagged": second == 600}, False, id="a blank now and then"
        ),
        pytest.param({**BUSY, "energy_j": None}, False, id="no energy counter"),
    ],
)
@built_together
def test_healthy_series_are_no_finding(cluster, values, exact):
    gpus = Gpus(cluster)
    held(gpus, values, exact=exact)
    yield
    assert found(gpus) == []

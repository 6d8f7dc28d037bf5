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
    return gpus.rows("standing_counters", "rule, samples, confidence, evidence")


ENERGY = "the energy counter stood still at a mean power of 500 W"
POWER = "power stood at 431.0 W, 120 samples; activity changed by 60 % meanwhile"
# readings, whether they are as given; rule, samples and confidence of the finding, its evidence
STANDING = [
    pytest.param(
        lambda s: varied(s, energy_j=5e6), True, ("standing_energy", 120, "Confirmed"), ENERGY,
        id="an energy counter that gains nothing at power",
        marks=pytest.mark.fires("standing_energy"),
    ),
    pytest.param(
        lambda s: varied(s, power_w=431.0), True, ("standing_power", 120, "Likely"), POWER,
        id="power that does not follow the load", marks=pytest.mark.fires("standing_power"),
    ),
    pytest.param(
        lambda s: varied(s, gpu_temperature_c=62.0), True,
        ("standing_temperature", 120, "Likely"), "",
        id="temperature that does not follow the load for an hour",
        marks=pytest.mark.fires("standing_temperature"),
    ),
    pytest.param(  # a stalled host engine repeats its last values: that is not idle, and not work
        {**BUSY, "energy_j": 5e6}, True, ("frozen_series", 120, "Confirmed"), "",
        id="power and energy", marks=pytest.mark.fires("frozen_series"),
    ),
    pytest.param(
        {**BUSY, "engine_active_ratio": 0.0, "sm_active_ratio": 0.0}, False,
        ("stuck_profiling", 120, "Likely"), "",
        id="no engine activity at full utilisation", marks=pytest.mark.fires("stuck_profiling"),
    ),
    pytest.param(
        lambda s: varied(s, is_flagged=s % 300 == 0), False,
        ("rejected_values", 12, "Confirmed"), "",
        id="rejected values", marks=pytest.mark.fires("rejected_values"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("values", "exact", "expected", "evidence"), STANDING)
@built_together
def test_what_stands_still_is_found(cluster, values, exact, expected, evidence):
    gpus = Gpus(cluster)
    gpus.node("b", 1)  # which is idle
    cluster.job("2", 0, HOUR, ["b"], 1)
    gpus.read("b/0", HOUR, IDLE)
    held(gpus, values, exact=exact)
    yield
    ((*row, text),) = found(gpus)
    assert tuple(row) == expected
    assert text.startswith(evidence)


@pytest.mark.quiet("standing_energy", "standing_power", "standing_temperature")
@pytest.mark.quiet("frozen_series", "stuck_profiling", "rejected_values")
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

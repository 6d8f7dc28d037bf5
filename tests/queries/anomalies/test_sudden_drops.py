"""Falls of the use of a running job that stay."""

import pytest
from tests.queries.anomalies.conftest import BUSY, IDLE, Gpus
from tests.queries.conftest import built_together, phase, steps

HOUR = 3_600
END = 4 * HOUR
SLOW = {**BUSY, "sm_active_ratio": 0.3, "power_w": 260.0}


def job(gpus, values, *, size=2, events=()):
    gpus.node("a", size)
    gpus.evidence.job("1", 0, END, ["a"], size)
    if events:
        gpus.evidence.events("1", list(events))
    for i in range(size):
        gpus.read(f"a/{i}", END, values)


@pytest.mark.fires("use_drop", "power_drop")
@built_together
def test_use_that_falls_and_stays_is_found(cluster):
    gpus = Gpus(cluster)
    job(gpus, lambda second: BUSY if second < 2 * HOUR else SLOW)
    yield
    found = gpus.found("sudden_drops")

    assert [row["rule"] for row in found] == ["power_drop", "use_drop"]
    use = found[1]
    assert use["start_at"] == gpus.evidence.at(2 * HOUR)
    assert (use["before"], use["after"]) == (pytest.approx(0.8), pytest.approx(0.3))
    assert use["end_at"] == gpus.evidence.at(END)
    assert use["gpu_ms"] == 2 * 2 * HOUR * 1000
    assert use["confidence"] == "Confirmed"
    assert use["evidence"].startswith("use of the GPUs fell from 80 % to 30 %")


@built_together
def test_it_ends_when_use_comes_back(cluster):
    gpus = Gpus(cluster)
    job(gpus, lambda second: SLOW if 2 * HOUR <= second < 3 * HOUR else BUSY)
    yield
    found = gpus.found("sudden_drops")

    assert {row["end_at"] for row in found} == {gpus.evidence.at(3 * HOUR)}


@pytest.mark.quiet("use_drop", "power_drop")
@pytest.mark.parametrize(
    "values",
    [
        pytest.param(lambda second: IDLE if second // 600 == 12 else BUSY, id="ten minutes"),
        pytest.param(lambda second: BUSY if second // 1200 % 2 else SLOW, id="up and down"),
        pytest.param(
            lambda second: {**BUSY, "sm_active_ratio": 0.8 - 0.5 * second / END}, id="slowly"
        ),
        pytest.param(lambda second: SLOW if second < 2 * HOUR else BUSY, id="upwards"),
        pytest.param(lambda second: BUSY if second < END - 1100 else IDLE, id="at its end"),
        pytest.param(
            lambda second: BUSY if second < 2 * HOUR else IDLE,
            id="an end hours before the release, which is an idle allocation",
        ),
        pytest.param(
            lambda second: BUSY if second < 2 * HOUR + 90 else IDLE,
            id="an end within ten minutes, of which the first readings are active",
        ),
    ],
)
@built_together
def test_other_changes_are_no_sudden_drops(cluster, values):
    gpus = Gpus(cluster)
    job(gpus, values)
    yield
    assert gpus.found("sudden_drops") == []


@built_together
def test_a_declared_evaluation_explains_it(cluster):
    gpus = Gpus(cluster)
    events = [
        *steps(1, 120, 0, 60.0),
        phase("eval", 2 * HOUR, 3 * HOUR),
        *steps(121, 179, 3 * HOUR, 60.0),
    ]

    job(gpus, lambda second: SLOW if 2 * HOUR <= second < 3 * HOUR else BUSY, events=events)
    yield
    found = gpus.found("sudden_drops")

    assert found == []

"""Two instruments that report one fact differently are a finding with both figures."""

import pytest
from tests.queries.conftest import built_together, steps

HOUR_S = 3600


def disagreements(cluster):
    return cluster.read("select fact, said from marts.disagreeing_instruments").rows()


def gpu(cluster, watts, counted_w):
    """Add a GPU whose power readings and counter are of these powers, for two hours."""
    node = f"{cluster.name}-n"
    cluster.telemetry(node, 1)
    counted = {"power_w": watts, "energy_j": lambda s: counted_w * s, "gpu_busy_ratio": 1.0}
    cluster.readings(cluster.gpu(f"{node}-0"), READ_S, "nvml", **counted)


READ_S = range(0, 2 * HOUR_S + 1, 30)


# what it shows: power by its readings, by the counter, at the node's meter: what disagrees
POWERS = {
    "a counter of half the power": (400.0, 200.0, None, ["energy of a GPU"]),
    "within a tenth": (400.0, 380.0, None, []),
    "a meter that has less than the GPU": (400.0, 400.0, 300.0, ["energy of a node"]),
    "a server draws more than its GPU": (400.0, 400.0, 700.0, []),
}


@pytest.mark.parametrize(("watts", "counted_w", "meter_w", "facts"), POWERS.values(), ids=POWERS)
@built_together
def test_energy(cluster, watts, counted_w, meter_w, facts):
    gpu(cluster, watts, counted_w)
    if meter_w is not None:
        cluster.host(f"{cluster.name}-n", READ_S, "ipmi", power_w=meter_w)
    yield
    assert [fact for fact, _ in disagreements(cluster)] == facts


@built_together
def test_both_figures_are_said(cluster):
    gpu(cluster, 400.0, 200.0)
    yield
    ((_, said),) = disagreements(cluster)
    assert said.endswith("kWh")
    assert "its counter has 0.38" in said
    assert "its power readings 0.76" in said


@built_together
def test_a_job_that_failed_and_a_scheduler_that_completed_it(cluster):
    cluster.job_on_a_node("7", 0, 900, 1)
    failure = {"event": "failure", "kind": "cuda_error", "t": 810}
    cluster.events("7", [*steps(1, 80, 0), failure])
    cluster.job("8", 900, 1800, ["a"], 1, state="FAILED")
    cluster.events("8", [*steps(1, 80, 900), {**failure, "t": 1710}])
    yield
    said = "the scheduler has COMPLETED, the job reports cuda_error at 2027-01-15 08:13:30"
    assert disagreements(cluster) == [("outcome", said)]

"""What readings of telemetry say of held and free GPUs, rule by rule."""

import pytest
from tests.queries.conftest import built_together, durable, steps


@built_together
def test_busy_then_idle_is_one_gap_not_an_average(cluster):
    """Five minutes of work, then ten hours of nothing."""
    cluster.job_on_a_node("1", 0, 36_300, 1)
    cluster.samples("a#0", cluster.every(-10, 36_300), lambda s: s <= 300)
    yield
    assert cluster.gpu_s() == {"busy_unclassified": 300, "idle_held": 36_000}
    gap = cluster.read("select gap_s, category from marts.idle_gaps where is_held").rows()
    assert gap == [(36_000.0, "idle_held")]


@built_together
def test_a_gpu_that_does_nothing_while_its_job_steps_is_found(cluster):
    """The ledger counts its time with the steps: job events cover all GPUs of the job."""
    cluster.job_on_a_node("1", 0, 1000, 2)
    cluster.events("1", [*steps(1, 100, 0), durable(100, 1000)])
    cluster.samples("a#0", cluster.every(-10, 1000), lambda _: True)
    cluster.samples("a#1", cluster.every(-10, 1000), lambda s: not (50 < s <= 150 or s > 400))
    yield
    assert cluster.gpu_s() == {"step_unsplit": 2000}
    found = cluster.read(
        "select gap_s, is_beside_work, cause, evidence from marts.idle_gaps where is_held "
        "order by start_at"
    )

    proof = (
        "no activity in {} % of the gap, the part that readings cover; 100 % of it is "
        "Training step (communication not measured) in the ledger"
    )
    # less than 300 s may be a pause
    assert found.rows() == [
        (110.0, False, None, proof.format(91)),
        (600.0, True, "Unused by its job", proof.format(100)),
    ]


# what it shows: end of the job run, seconds of the readings, whether the GPU works, GPU-seconds
READINGS = {
    # each reading covers back at most 2.5 intervals of 10 s
    "a hole in the readings is unknown, not idle": (
        1000, [*range(-10, 201, 10), *range(800, 1001, 10)], lambda _: False,
        {"idle_held": 200 + 225, "unknown": 1000 - 200 - 225},
    ),
    # the reading after a broken one covers back over it; none comes after the last
    "a broken profiling share is no reading": (
        1000, range(-10, 1001, 10), lambda s: None if s % 100 == 0 else 1.0,
        {"busy_unclassified": 990, "unknown": 10},
    ),
    # the only distance that ends in the second hour is the hole itself
    "one reading after a hole covers no more than its series' interval": (
        4200, [*range(-10, 3601, 10), 4000], lambda _: True,
        {"busy_unclassified": 3600 + 25, "unknown": 600 - 25},
    ),
    "the first reading after an hour without one covers back into it": (
        7400, [*range(-60, 3001, 60), *range(7220, 7401, 60)], lambda _: True,
        {"busy_unclassified": 3000 + 150 + 180, "unknown": 4400 - 150 - 180},
    ),
    "a first reading covers nothing": (
        100, range(40, 101, 10), lambda _: True, {"unknown": 40, "busy_unclassified": 60},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("end", "seconds", "active", "expected"), READINGS.values(), ids=READINGS)
@built_together
def test_what_readings_cover(cluster, end, seconds, active, expected):
    cluster.job_on_a_node("1", 0, end, 1)
    cluster.samples("a#0", seconds, active)
    yield
    assert cluster.gpu_s() == expected

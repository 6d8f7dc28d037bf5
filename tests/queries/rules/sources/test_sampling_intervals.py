"""How far a reading covers back hangs on its own series around it, and on nothing else."""

import pytest
from tests.queries.conftest import built_together

# what it shows: seconds of the readings, end of the job run, GPU-seconds
READINGS = {
    # the only distance that ends in the second hour is the hole itself
    "one reading after a hole covers no more than its series' interval": (
        [*range(-10, 3601, 10), 4000], 4200,
        {"busy_unclassified": 3600 + 25, "unknown": 600 - 25},
    ),
    "the first reading after an hour without one covers back into it": (
        [*range(-60, 3001, 60), *range(7220, 7401, 60)], 7400,
        {"busy_unclassified": 3000 + 150 + 180, "unknown": 4400 - 150 - 180},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("seconds", "end", "expected"), READINGS.values(), ids=READINGS)
@built_together
def test_how_far_a_reading_covers_back(cluster, seconds, end, expected):
    cluster.job_on_a_node("1", 0, end, 1)
    cluster.samples("a#0", seconds, lambda _: True)
    yield
    assert cluster.gpu_s() == expected


@built_together
def test_a_slow_series_keeps_its_interval_beside_a_fast_one(cluster):
    for node, interval in (("slow", 60), ("fast", 10)):
        cluster.node(node, 1)
        cluster.job(node, 0, 7200, [node], 1)
        works = node == "fast"
        cluster.samples(
            f"{node}#0", cluster.every(-interval, 7200, interval), lambda _, works=works: works
        )
    yield
    assert cluster.gpu_s() == {"idle_held": 7200, "busy_unclassified": 7200}

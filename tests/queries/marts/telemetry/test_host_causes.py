"""Readings of hosts that come later."""

from tests.queries.anomalies.gpus import BUSY, Gpus
from tests.queries.conftest import built_together

HOUR = 3_600
CORES = 64
WAITING = {**BUSY, "sm_active_ratio": 0.2, "power_w": 220.0}


@built_together(builds=2)
def test_hosts_that_are_read_later_are_rolled_up(cluster):
    gpus = Gpus(cluster)
    cluster.job("1", 0, HOUR, ["a"], 2)
    gpus.node("a", 2)
    for i in range(2):
        gpus.read(f"a/{i}", HOUR, WAITING)
    read = [
        {"ts": s, "cpu_total_s": float(CORES * s), "cpu_busy_s": 0.97 * CORES * s}
        for s in range(0, HOUR + 601, 60)
    ]
    of_node = {"source": "node-exporter", "node": "a", "memory_total_bytes": 10**12}
    cluster.add("node_samples", *read[:20], **of_node)
    yield
    assert gpus.rows("host_causes") == []
    cluster.add("node_samples", *read[20:], **of_node)
    yield
    assert gpus.rows("host_causes") == [("cpu_starved",)]

"""Readings of hosts that come later."""

from tests.queries.anomalies.conftest import BUSY
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build

HOUR = 3_600
CORES = 64
WAITING = {**BUSY, "sm_active_ratio": 0.2, "power_w": 220.0}


def found(gpus):
    return [row["rule"] for row in gpus.found("host_causes")]


def test_hosts_that_are_read_later_are_rolled_up_as_in_a_full_build(gpus):
    gpus.evidence.job("1", 0, HOUR, ["a"], 2)
    gpus.node("a", 2)
    for i in range(2):
        gpus.read(f"a/{i}", HOUR, WAITING)
    rows = [
        {"node": "a", "ts": gpus.evidence.at(s), "cpu_total_s": float(CORES * s),
         "cpu_busy_s": 0.97 * CORES * s, "memory_total_bytes": 10**12}
        for s in range(0, HOUR + 601, 60)
    ]  # fmt: skip
    gpus.evidence.load("node_samples", rows[:20], "node-exporter")
    assert found(gpus) == []
    gpus.evidence.load("node_samples", rows[20:], "node-exporter")

    assert found(gpus) == ["cpu_starved"]
    assert_equals_full_build(gpus.evidence)

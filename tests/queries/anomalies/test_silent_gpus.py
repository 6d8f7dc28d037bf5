"""Series that vanish: of one GPU, of a node, of everything."""

import pytest
from tests.queries.anomalies.conftest import BUSY, Gpus
from tests.queries.conftest import at, built_together

HOUR = 3_600
EVER = 2 * HOUR


def world(gpus, silences, *, nodes=2, of_node=2):
    """Load readings of an hour; silences: GPU -> (from, to) without readings."""
    for n in range(nodes):
        gpus.node(f"n{n}", of_node)
        for i in range(of_node):
            start, end = silences.get((n, i), (EVER, EVER))
            gpus.read(f"n{n}/{i}", HOUR, lambda s, a=start, b=end: None if a < s < b else BUSY)
    gpus.evidence.watched(HOUR)


ONE = {(0, 1): (1800, EVER)}
ALL = [(n, i) for n in range(2) for i in range(2)]
# when GPUs of two nodes are not read, columns and rows of what is found
SILENCES = [
    pytest.param(
        ONE, "rule, node, gpu_uuid, start_at, end_at, gpu_ms, score, last_power_w is not null",
        [("silent_gpu", "n0", "n0/1", at(1800), None, 1_800_000, 60.0, True)],
        id="a GPU is read no more while its node is", marks=pytest.mark.fires("silent_gpu"),
    ),
    pytest.param(
        {(0, 1): (HOUR - 75, EVER)}, "gpu_uuid, start_at", [("n0/1", at(HOUR - 90))],
        id="it is found within two scrapes",
    ),
    pytest.param(
        {(0, 1): (HOUR - 30, EVER)}, "rule", [],
        id="one late reading", marks=pytest.mark.quiet("silent_gpu", "silent_source"),
    ),
    pytest.param(  # a reading covers back 2.5 intervals
        {(0, 1): (1200, 2400)}, "rule, start_at, end_at", [("silent_gpu", at(1200), at(2325))],
        id="it closes when the GPU is read again",
    ),
    pytest.param(
        {(0, 0): (1200, 2400), (0, 1): (1200, 2400)}, "rule, node, gpu_uuid, gpus",
        [("silent_node", "n0", None, 2)],
        id="all GPUs of a node are one finding", marks=pytest.mark.fires("silent_node"),
    ),
    pytest.param(
        {(0, 0): (1200, 1400), (0, 1): (1200, 1400)}, "rule", [],
        id="the exporter of a node is restarted", marks=pytest.mark.quiet("silent_node"),
    ),
    pytest.param(  # the scheduler goes on, the readings of all nodes do not
        dict.fromkeys(ALL, (1800, EVER)), "rule, node, gpus, sources, end_at",
        [("silent_source", None, 4, "dcgm", None)],
        id="a source that stops is one finding", marks=pytest.mark.fires("silent_source"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("silences", "columns", "expected"), SILENCES)
@built_together
def test_what_silences_are_found(cluster, silences, columns, expected):
    gpus = Gpus(cluster)
    world(gpus, silences)
    yield
    assert gpus.rows("silent_gpus", columns) == expected


@built_together
def test_a_node_that_is_powered_off_is_no_finding_and_one_that_is_down_is_confirmed(cluster):
    gpus = Gpus(cluster)
    world(gpus, dict.fromkeys(ALL, (1200, 2400)), nodes=3)
    cluster.state("n0", "powered_off", 1190, 2390)
    cluster.state("n1", "down", 1190, 2390)
    yield
    found = gpus.rows("silent_gpus", "rule, node, confidence")
    assert found == [("silent_node", "n1", "Confirmed")]


@built_together
def test_an_event_off_the_bus_confirms_it(cluster):
    gpus = Gpus(cluster)
    world(gpus, ONE)
    cluster.add(
        "gpu_events", source="kernel-log", node="n0", gpu_uuid=gpus.uuid("n0/1"), ts=1810,
        ts_precision="exact", kind="xid", code=79, message="GPU has fallen off the bus",
    )  # fmt: skip
    yield
    ((confidence, evidence),) = gpus.rows("silent_gpus", "confidence, evidence")
    assert confidence == "Confirmed"
    assert "Xid 79" in evidence


@built_together
def test_a_gpu_that_was_never_read_has_not_vanished(cluster):
    gpus = Gpus(cluster)
    gpus.node("n0", 2)
    gpus.read("n0/0", HOUR, BUSY)
    cluster.watched(HOUR)
    yield
    assert gpus.rows("silent_gpus") == []

"""Series that vanish: of one GPU, of a node, of everything."""

import pytest
from tests.queries.anomalies.conftest import BUSY, Gpus
from tests.queries.conftest import built_together

HOUR = 3_600


def world(gpus, silences, *, nodes=2, of_node=2):
    """Load readings of an hour; silences: GPU -> (from, to) without readings."""
    for n in range(nodes):
        gpus.node(f"n{n}", of_node)
        for i in range(of_node):
            start, end = silences.get((n, i), (HOUR * 2, HOUR * 2))
            gpus.read(
                f"n{n}/{i}", HOUR, lambda s, a=start, b=end: None if a < s < b else BUSY
            )  # fmt: skip
    gpus.evidence.watched(HOUR)


@pytest.mark.fires("silent_gpu")
@built_together
def test_a_gpu_that_is_read_no_more_while_its_node_is_has_vanished(cluster):
    gpus = Gpus(cluster)
    world(gpus, {(0, 1): (1800, HOUR * 2)})
    yield
    (row,) = gpus.found("silent_gpus")

    assert (row["rule"], row["node"], row["gpu_uuid"]) == ("silent_gpu", "n0", "n0/1")
    assert row["start_at"] == gpus.evidence.at(1800)
    assert row["end_at"] is None
    assert row["gpu_ms"] == 1800 * 1000
    assert row["score"] == 60.0
    assert row["last_power_w"] is not None


@built_together
def test_it_is_found_within_two_scrapes(cluster):
    gpus = Gpus(cluster)
    world(gpus, {(0, 1): (HOUR - 75, HOUR * 2)})
    yield
    (row,) = gpus.found("silent_gpus", "gpu_uuid, epoch(start_at - from_ms(1800000000000)) as at")

    assert row == {"gpu_uuid": "n0/1", "at": HOUR - 90.0}


@pytest.mark.quiet("silent_gpu", "silent_source")
@built_together
def test_one_reading_that_is_late_is_no_silence(cluster):
    gpus = Gpus(cluster)
    world(gpus, {(0, 1): (HOUR - 30, HOUR * 2)})
    yield
    assert gpus.found("silent_gpus") == []


@built_together
def test_a_silence_closes_when_the_gpu_is_read_again(cluster):
    gpus = Gpus(cluster)
    world(gpus, {(0, 1): (1200, 2400)})
    yield
    (row,) = gpus.found("silent_gpus", "rule, start_at, end_at")

    # a reading covers back 2.5 intervals
    assert row == {
        "rule": "silent_gpu", "start_at": gpus.evidence.at(1200), "end_at": gpus.evidence.at(2325),
    }  # fmt: skip


@pytest.mark.fires("silent_node")
@built_together
def test_a_node_whose_gpus_are_all_silent_is_one_finding(cluster):
    gpus = Gpus(cluster)
    world(gpus, {(0, 0): (1200, 2400), (0, 1): (1200, 2400)})
    yield
    (row,) = gpus.found("silent_gpus", "rule, node, gpu_uuid, gpus")

    assert row == {"rule": "silent_node", "node": "n0", "gpu_uuid": None, "gpus": 2}


@pytest.mark.quiet("silent_node")
@built_together
def test_a_node_whose_exporter_is_restarted_is_no_finding(cluster):
    gpus = Gpus(cluster)
    world(gpus, {(0, 0): (1200, 1400), (0, 1): (1200, 1400)})
    yield
    assert gpus.found("silent_gpus") == []


@pytest.mark.fires("silent_source")
@built_together
def test_a_source_that_stops_is_one_finding(cluster):
    """The scheduler goes on, the readings of all nodes do not."""
    gpus = Gpus(cluster)
    world(gpus, {(n, i): (1800, HOUR * 2) for n in range(2) for i in range(2)})
    yield
    (row,) = gpus.found("silent_gpus", "rule, node, gpus, sources, end_at")

    assert row == {
        "rule": "silent_source", "node": None, "gpus": 4, "sources": "dcgm", "end_at": None
    }  # fmt: skip


@built_together
def test_a_node_that_is_powered_off_is_no_finding_and_one_that_is_down_is_confirmed(cluster):
    gpus = Gpus(cluster)
    world(gpus, {(n, i): (1200, 2400) for n in range(2) for i in range(2)}, nodes=3)
    gpus.evidence.state("n0", "powered_off", 1190, 2390)
    gpus.evidence.state("n1", "down", 1190, 2390)
    yield
    found = gpus.found("silent_gpus", "rule, node, confidence")

    assert found == [{"rule": "silent_node", "node": "n1", "confidence": "Confirmed"}]


@built_together
def test_an_event_off_the_bus_confirms_it(cluster):
    gpus = Gpus(cluster)
    world(gpus, {(0, 1): (1800, HOUR * 2)})
    event = {
        "cluster": cluster.name, "node": "n0", "gpu_uuid": gpus.uuid("n0/1"),
        "ts": gpus.evidence.at(1810), "ts_precision": "exact", "kind": "xid",
        "code": 79, "message": "GPU has fallen off the bus",
    }  # fmt: skip
    gpus.evidence.load("gpu_events", [event], "kernel-log")
    yield
    (row,) = gpus.found("silent_gpus", "confidence, evidence")

    assert row["confidence"] == "Confirmed"
    assert "Xid 79" in row["evidence"]


@built_together
def test_a_gpu_that_was_never_read_has_not_vanished(cluster):
    gpus = Gpus(cluster)
    gpus.node("n0", 2)
    gpus.read("n0/0", HOUR, BUSY)
    gpus.evidence.watched(HOUR)
    yield
    assert gpus.found("silent_gpus") == []

"""Series that two servers, or two jobs of one, scraped from the same exporter."""

import numpy as np
import pytest

from goodput_ingest.prometheus_api.answer import Series
from goodput_ingest.prometheus_api.replicas import without_doubles

A, B = {"replica": "a"}, {"replica": "b"}
# series as (times in seconds, labels), and the times of those that are left
CASES = {
    "of two replicas the first is used": (
        [([11, 41, 71, 101], B), ([0, 30, 60, 90], A)], [[0, 30, 60, 90]],
    ),
    "the other replica fills the time in which the first was away": (
        [([0, 30, 150, 180], {"prometheus_replica": "a"}),
         ([11, 41, 71, 101, 131, 161], {"prometheus_replica": "b"})],
        [[0, 30, 71, 101, 131, 150, 180]],
    ),
    "a scrape that came late is no gap": (
        [([0, 30, 70, 100], A), ([20, 50, 80, 110], B)], [[0, 30, 70, 100]],
    ),
    "the other replica goes on where the first ended": (
        [([0, 30, 60], A), ([11, 41, 71, 101, 131, 161], B)], [[0, 30, 60, 101, 131, 161]],
    ),
    "a replica with nothing leaves it to the other": ([([], A), ([11, 41], B)], [[11, 41]]),
    "an exporter scraped by two jobs is one": (
        [([0, 30], {"job": "dcgm"}), ([5, 35], {"job": "pods"})], [[0, 30]],
    ),
    "series that differ in anything else are two": (
        [([0, 30], {**A, "gpu": "0"}), ([5, 35], {**B, "gpu": "1"})], [[0, 30], [5, 35]],
    ),
    "halves of an answer that was too much are one, with the sample between them once": (
        [([0, 30, 60], {"gpu": "0"}), ([60, 90], {"gpu": "0"})], [[0, 30, 60, 90]],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "left"), CASES.values(), ids=CASES)
def test_doubles_go_and_gaps_are_filled(given, left):
    found = []
    for times_s, labels in given:
        times_ms = np.array([1000 * t for t in times_s], np.int64)
        found.append(Series({"__name__": "m", **labels}, times_ms, times_ms / 1000))

    assert [(one.times_ms / 1000).tolist() for one in without_doubles(found)] == left

"""Series that two servers, or two jobs of one, scraped from the same exporter."""

import numpy as np

from goodput_ingest.prometheus_api.answer import Series
from goodput_ingest.prometheus_api.replicas import without_doubles


def series(times_s, **labels):
    times_ms = np.array([round(1000 * t) for t in times_s], np.int64)
    return Series({"__name__": "m", **labels}, times_ms, times_ms / 1000)


def times_s(found):
    return [(one.times_ms / 1000).tolist() for one in found]


def test_of_two_replicas_the_first_is_used():
    a = series([0, 30, 60, 90], replica="a")
    b = series([11, 41, 71, 101], replica="b")

    assert times_s(without_doubles([b, a])) == [[0, 30, 60, 90]]


def test_the_other_replica_fills_the_time_in_which_the_first_was_away():
    a = series([0, 30, 150, 180], prometheus_replica="a")
    b = series([11, 41, 71, 101, 131, 161], prometheus_replica="b")

    assert times_s(without_doubles([a, b])) == [[0, 30, 71, 101, 131, 150, 180]]


def test_a_scrape_that_came_late_is_no_gap():
    a = series([0, 30, 70, 100], replica="a")
    b = series([20, 50, 80, 110], replica="b")

    assert times_s(without_doubles([a, b])) == [[0, 30, 70, 100]]


def test_the_other_replica_goes_on_where_the_first_ended():
    a = series([0, 30, 60], replica="a")
    b = series([11, 41, 71, 101, 131, 161], replica="b")

    assert times_s(without_doubles([a, b])) == [[0, 30, 60, 101, 131, 161]]


def test_a_replica_with_nothing_leaves_it_to_the_other():
    found = without_doubles([series([], replica="a"), series([11, 41], replica="b")])

    assert times_s(found) == [[11, 41]]


def test_an_exporter_scraped_by_two_jobs_is_one():
    found = without_doubles([series([0, 30], job="dcgm"), series([5, 35], job="pods")])

    assert times_s(found) == [[0, 30]]


def test_series_that_differ_in_anything_else_are_two():
    given = [series([0, 30], replica="a", gpu="0"), series([5, 35], replica="b", gpu="1")]

    assert times_s(without_doubles(given)) == [[0, 30], [5, 35]]


def test_a_series_that_came_in_parts_is_whole_again():
    """An answer that was too much is asked for in halves; both may have the sample between."""
    parts = [series([0, 30, 60], gpu="0"), series([60, 90], gpu="0")]

    assert times_s(without_doubles(parts)) == [[0, 30, 60, 90]]

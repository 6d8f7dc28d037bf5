"""Changes are shown between windows of equal coverage alone; otherwise the reason is shown."""

from datetime import UTC, datetime

import polars as pl
import pytest

from goodput_app.dashboard import comparison
from goodput_queries.scope import Scope

NOW, EARLIER = Scope(from_ms=1000, to_ms=2000), Scope(from_ms=0, to_ms=1000)


def clusters(**spans):
    """Give marts.clusters with these first and last milliseconds."""
    return pl.DataFrame(
        [
            {"cluster": name, "first_at": at(first), "as_of_at": at(last)}
            for name, (first, last) in spans.items()
        ]
    )


def at(ms):
    return datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    "spans",
    [{"a": (0, 2000)}, {"a": (0, 1990), "b": (0, 2000)}, {"a": (0, 2000), "ended": (-900, -100)}],
)
def test_windows_of_equal_coverage_compare(spans):
    assert comparison.unequal_clusters(clusters(**spans), NOW, EARLIER) is None


@pytest.mark.parametrize(
    ("first", "last", "now", "then"), [(500, 2000, 100, 50), (0, 1500, 50, 100), (0, 900, 0, 90)]
)
def test_a_cluster_that_covers_one_window_more_than_the_other_is_named(first, last, now, then):
    found = comparison.unequal_clusters(clusters(a=(0, 2000), b=(first, last)), NOW, EARLIER)

    assert found == (
        f"No change shown: cluster b has data for {now} % of this time range and {then} % of the "
        "one before."
    )


def test_windows_that_evidence_classifies_unlike_do_not_compare():
    now, then = ({"unsettled_ms": open_ms, "capacity_ms": 100} for open_ms in (7, 59))

    assert comparison.unequal_evidence(now, now) is None
    assert comparison.unequal_evidence(now, then) == (
        "No change shown: evidence classifies 93.0 % of the capacity in this time range and 41.0 % "
        "in the one before."
    )

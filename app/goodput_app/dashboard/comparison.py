"""Which window a change is measured against, or why no change is shown."""

from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from goodput_app.dashboard import theme
from goodput_app.dashboard.data import marts
from goodput_app.text import units
from goodput_queries.scope import Scope

WINDOW_TOLERANCE = 0.02  # clusters end seconds apart
EVIDENCE_TOLERANCE = 0.05


@dataclass(frozen=True)
class Before:
    """The window before: its row of marts.goodput_summary, and its scope; or why it is not shown.

    All are None where the database has nothing from before the window.
    """

    summary: dict[str, Any] | None = None
    scope: Scope | None = None
    reason: str | None = None


def before(scope: Scope, now: dict[str, Any]) -> Before:
    """Return the window before, as long as that of the scope, where both are covered alike.

    now: the row of marts.goodput_summary of the scope.
    """
    if scope.from_ms is None or scope.to_ms is None:
        return Before()
    earlier = replace(scope, from_ms=2 * scope.from_ms - scope.to_ms, to_ms=scope.from_ms)
    clusters = marts.clusters()
    if scope.cluster is not None:
        clusters = clusters.filter(pl.col("cluster") == scope.cluster)
    if not (clusters["first_at"].dt.epoch("ms") < scope.from_ms).any():
        return Before()
    if (reason := unequal_clusters(clusters, scope, earlier)) is not None:
        return Before(reason=reason)
    then = marts.goodput_summary(earlier).row(0, named=True)
    if not then["capacity_ms"]:
        return Before()
    if (reason := unequal_evidence(now, then)) is not None:
        return Before(reason=reason)
    return Before(then, earlier)


def unequal_clusters(clusters: pl.DataFrame, scope: Scope, earlier: Scope) -> str | None:
    """Return which cluster has data for more of one window than of the other.

    clusters: marts.clusters
    """
    spans = clusters.sort("cluster").select(
        "cluster", pl.col("first_at").dt.epoch("ms"), pl.col("as_of_at").dt.epoch("ms")
    )
    for cluster, first_ms, as_of_ms in spans.iter_rows():
        now, then = (_covered(window, first_ms, as_of_ms) for window in (scope, earlier))
        if abs(now - then) > WINDOW_TOLERANCE:
            return (
                f"No change shown: cluster {theme.printable(cluster)} has data for "
                f"{now * 100:.0f} % of this time range and {then * 100:.0f} % of the one before."
            )
    return None


def unequal_evidence(now: dict[str, Any], then: dict[str, Any]) -> str | None:
    """Return by how much evidence classifies more of one window than of the other.

    now, then: rows of marts.goodput_summary
    """
    left, right = (1 - row["unsettled_ms"] / row["capacity_ms"] if row["capacity_ms"] else 0.0
                   for row in (now, then))  # fmt: skip
    if abs(left - right) <= EVIDENCE_TOLERANCE:
        return None
    return (
        f"No change shown: evidence classifies {units.percent(left)} of the capacity in this time "
        f"range and {units.percent(right)} in the one before."
    )


def _covered(window: Scope, first_ms: int, as_of_ms: int) -> float:
    start, end = window.from_ms or 0, window.to_ms or 0
    return max(0, min(end, as_of_ms) - max(start, first_ms)) / max(end - start, 1)

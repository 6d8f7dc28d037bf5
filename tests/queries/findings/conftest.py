"""Findings of clusters that are built together, evaluated once for all tests of a module."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.queries.conftest import Cluster

    from goodput_queries.storage.store import LocalStore


@functools.lru_cache(maxsize=1)
def _all_findings(store: LocalStore, commits: int) -> list[dict[str, Any]]:  # noqa: ARG001
    """Return the findings of all clusters, the same until the next commit."""
    return store.read("from marts.findings order by rule, since_at").to_dicts()


def found_together(cluster: Cluster, columns: str = "rule") -> list[tuple[Any, ...]]:
    """Return columns of the cluster's findings."""
    rows = _all_findings(cluster.store, cluster.store.commits)
    names = columns.split(", ")
    return [tuple(row[name] for name in names) for row in rows if row["cluster"] == cluster.name]


def rules_together(cluster: Cluster) -> set[str]:
    """Return the rules of the cluster's findings."""
    return {rule for (rule,) in found_together(cluster)}

"""Findings of clusters that are built together, evaluated once for all tests of a module."""

import functools


@functools.lru_cache(maxsize=1)
def _all_findings(store, commits):  # noqa: ARG001
    """Return the findings of all clusters, the same until the next commit."""
    return store.read("from marts.findings order by rule, since_at").to_dicts()


def found_together(cluster, columns="rule"):
    """Return columns of the cluster's findings."""
    rows = _all_findings(cluster.store, cluster.store.commits)
    names = columns.split(", ")
    return [tuple(row[name] for name in names) for row in rows if row["cluster"] == cluster.name]


def rules_together(cluster):
    """Return the rules of the cluster's findings."""
    return {rule for (rule,) in found_together(cluster)}

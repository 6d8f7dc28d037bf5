"""Findings of clusters that are built together, evaluated once for all tests of a module."""

import functools


@functools.lru_cache(maxsize=4)
def _all_rows(store, commits, table):  # noqa: ARG001
    """Return rows about all clusters, the same until the next commit."""
    return store.read(f"from {table}").to_dicts()


def rows_together(cluster, table):
    """Return the cluster's rows of a table that has one row or more of each cluster."""
    rows = _all_rows(cluster.store, cluster.store.commits, table)
    return [row for row in rows if row["cluster"] == cluster.name]


def found_together(cluster, columns="rule"):
    """Return columns of the cluster's findings."""
    rows = rows_together(cluster, "(from marts.findings order by rule, since_at)")
    names = columns.split(", ")
    return [tuple(row[name] for name in names) for row in rows]

"""Findings of clusters that are built together, evaluated once for all tests of a module."""

import functools


@functools.lru_cache(maxsize=2)
def _all_rows(store, commits, sql):  # noqa: ARG001
    """Return rows about all clusters, the same until the next commit."""
    return store.read(sql).to_dicts()


def found_together(cluster, columns="rule"):
    """Return columns of the cluster's findings."""
    sql = "from marts.findings order by rule, since_at"
    rows = _all_rows(cluster.store, cluster.store.commits, sql)
    names = columns.split(", ")
    return [tuple(row[name] for name in names) for row in rows if row["cluster"] == cluster.name]

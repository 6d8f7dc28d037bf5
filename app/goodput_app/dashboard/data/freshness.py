"""How far the data of each cluster reaches: badges of the bar on top of every page."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl

from goodput_app.dashboard import theme, time_zone
from goodput_app.text import units

if TYPE_CHECKING:
    from datetime import datetime

    from goodput_app.dashboard.scope import View

CLUSTERS_SHOWN = 5
AMBER_AFTER = timedelta(seconds=60)
RED_AFTER = timedelta(seconds=150)


def badges(clusters: pl.DataFrame, shown: View) -> list[tuple[str, theme.Badge]]:
    """Return how far the data of each cluster in view reaches, the oldest first.

    clusters: marts.clusters. Of many clusters the oldest are named, the others counted.
    """
    if shown.scope.cluster is not None:
        clusters = clusters.filter(pl.col("cluster") == shown.scope.cluster)
    rows = clusters.sort("as_of_at", "cluster").select("cluster", "as_of_at").rows()
    found = [_freshness(f"{theme.printable(name)}: " if len(rows) > 1 else "", as_of, shown)
             for name, as_of in rows[:CLUSTERS_SHOWN]]  # fmt: skip
    if len(rows) > CLUSTERS_SHOWN:
        found.append(
            (f"{len(rows) - CLUSTERS_SHOWN} more clusters are as fresh or fresher", "gray")
        )
    return found


def _freshness(name: str, as_of: datetime, shown: View) -> tuple[str, theme.Badge]:
    if as_of <= shown.start:
        return f"{name}no data in this time range, data ends {time_zone.moment(as_of)}", "orange"
    if shown.mode != "LIVE":
        return f"{name}data to {time_zone.moment_of(as_of, shown.end)}", "gray"
    age = shown.now - as_of
    colour: theme.Badge = "red" if age > RED_AFTER else "orange" if age > AMBER_AFTER else "green"
    return f"{name}data {units.duration(age.total_seconds())} old", colour

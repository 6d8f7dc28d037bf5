"""Node states that a site writes: from when to when a node was in which state, and why.

    cluster,node,state,start,end,reason
    east,node017,down,2026-11-02T04:10:00Z,2026-11-02T09:30:00Z,GPU 3 fell off the bus
    east,*,up,2026-11-01T00:00:00Z,,

States are those of the ledger. An empty end is still so. Node `*` is up while the site watched the
whole cluster, so that a node without a row of that time was up.
"""

from typing import ClassVar

import polars as pl

from goodput_ingest.formats import csv_table, raw_tables
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS, Parsed, frame
from goodput_ingest.sources.site.rows import SiteTable
from goodput_queries.evidence.batch import Reject

STATES = ("up", "down", "drained", "maintenance", "powered_off", "planned")
WHOLE_CLUSTER = "*"
NODE_STATES = raw_tables.columns("node_states", "source", "state_raw", "user_name")


class NodeStates(SiteTable):
    """A file of node states."""

    name: ClassVar[str] = "node-states"
    table = "node_states"
    columns = ("cluster", "node", "state", "start", "end", "reason")
    required = ("node", "state", "start")
    times = ("start", "end")

    def row(self, row: dict[str, str], instant: csv_table.Instant) -> dict[str, object]:
        """Return one row; ValueError says what is wrong with it."""
        state = row["state"].lower()
        if not row["node"]:
            raise ValueError("it names no node")
        if state not in STATES:
            raise ValueError(f"state {row['state'][:40]!r} is none of {', '.join(STATES)}")
        if row["node"] == WHOLE_CLUSTER and state != "up":
            raise ValueError("node * stands for the whole cluster and can only be up")
        start, end = instant(row["start"]), instant(row.get("end", ""))
        if start is None:
            raise ValueError("it has no start")
        if end is not None and end < start:
            raise ValueError("it ends before it starts")
        return {
            "cluster": row.get("cluster") or self.options.cluster,
            "node": row["node"][:TEXT_MAX_CHARS],
            "state": state,
            "start_at": start,
            "end_at": end,
            "reason": row.get("reason", "")[:TEXT_MAX_CHARS] or None,
        }

    def tables(self, rows: list[dict[str, object]], rejects: list[Reject]) -> list[Parsed]:
        """Return `raw.node_states`."""
        return [Parsed(self.table, _merged(frame(rows, NODE_STATES)), rejects)]


def _merged(states: pl.DataFrame) -> pl.DataFrame:
    """Return one row for what began on a node at one time: it lasts as long as the longest.

    The table keeps one of them, and of an open and a closed one the closed.
    """
    ends = pl.col("end_at")
    reasons = pl.col("reason").drop_nulls().unique(maintain_order=True)
    return states.group_by("cluster", "node", "state", "start_at", maintain_order=True).agg(
        end_at=pl.when(ends.is_null().any()).then(None).otherwise(ends.max()),
        reason=pl.when(reasons.len() > 0).then(reasons.str.join("; ").str.head(TEXT_MAX_CHARS)),
    )

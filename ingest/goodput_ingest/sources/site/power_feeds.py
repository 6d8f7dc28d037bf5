"""Capacity of power feeds, for the check of what one of a pair carries if the other fails.

    cluster,feed,capacity_kw,server_ratio,note
    ,1A1,17.3,1.4,tap box 12
    ,1B1,17.3,1.4,

Feeds are called as the `feed` of the inventory calls them, where `1A1+1B1` is a node on both.
server_ratio: power of a server for each watt of its GPUs; without it the GPUs alone are the load.
"""

from typing import ClassVar

from goodput_ingest.formats import csv_table
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS
from goodput_ingest.sources.site.money import exact, overhead
from goodput_ingest.sources.site.rows import SiteTable


class PowerFeeds(SiteTable):
    """A file of power feeds."""

    name: ClassVar[str] = "power-feeds"
    table = "power_feeds"
    columns = ("cluster", "feed", "capacity_kw", "server_ratio", "note")
    required = ("feed", "capacity_kw")

    def row(
        self,
        row: dict[str, str],
        instant: csv_table.Instant,  # noqa: ARG002 -- feeds have no time
    ) -> dict[str, object]:
        """Return one row; ValueError says what is wrong with it."""
        if not row["feed"]:
            raise ValueError("it names no feed")
        if "+" in row["feed"]:
            raise ValueError("it names two feeds; write a row for each")
        if not (capacity_kw := exact(row, "capacity_kw")):
            raise ValueError("capacity_kw is not above 0")
        return {
            "cluster": row.get("cluster") or self.options.cluster,
            "feed": row["feed"][:TEXT_MAX_CHARS],
            "capacity_w": float(capacity_kw) * 1000,
            "server_ratio": float(overhead(row, "server_ratio")),
            "note": row.get("note", "")[:TEXT_MAX_CHARS] or None,
        }

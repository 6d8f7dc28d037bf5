"""Capacity of power feeds, for the check of what one of a pair carries if the other fails.

    cluster,feed,capacity_kw,server_ratio,note
    ,1A1,17.3,1.4,tap box 12
    ,1B1,17.3,1.4,

Feeds are called as the `feed` of the inventory calls them, where `1A1+1B1` is a node on both.
server_ratio: power of a server for each watt of its GPUs; without it the GPUs alone are the load.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from goodput_ingest.formats import csv_table, raw_tables
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS, Parsed, frame
from goodput_ingest.source import Batch, RecordedFile
from goodput_ingest.sources.site.money import exact, overhead
from goodput_ingest.sources.site.rows import read_rows

COLUMNS = ("cluster", "feed", "capacity_kw", "server_ratio", "note")
POWER_FEEDS = raw_tables.columns("power_feeds", "source")


class PowerFeeds(RecordedFile):
    """A file of power feeds: CSV whose header names the columns."""

    name: ClassVar[str] = "power-feeds"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- judged by content alone
        """Say whether the header has feeds with a capacity and nothing that is not known."""
        names = set(csv_table.header_names(head))
        return {"feed", "capacity_kw"} <= names <= set(COLUMNS)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.power_feeds`; raises IngestError for an unknown column."""
        read = read_rows(
            self.path, self.options, COLUMNS, ("feed", "capacity_kw"), self.name, self._feed
        )
        parsed = Parsed("power_feeds", frame(read.rows, POWER_FEEDS), read.rejects)
        yield parsed.batch(source=self.name, origin=str(self.path), digest=read.digest)

    def _feed(
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

"""Monthly budgets and GPU quotas of accounts.

    cluster,account,cost_per_month,quota_gpus,valid_from,valid_to,note
    ,nlp,120000,,2026-01-01T00:00:00Z,,approved in December
    east,nlp,,64,,,

Without a cluster a budget is for all clusters together. `currency` is as in `rates`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from goodput_ingest.formats import csv_table, raw_tables
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS, Parsed, frame
from goodput_ingest.source import Batch, RecordedFile
from goodput_ingest.sources.site.money import currency, exact, validity
from goodput_ingest.sources.site.rows import read_rows

COLUMNS = (
    *("cluster", "account", "cost_per_month", "quota_gpus"),
    *("currency", "valid_from", "valid_to", "note"),
)
AMOUNTS = {"cost_per_month", "quota_gpus"}
BUDGETS = raw_tables.columns("budgets", "source")


class Budgets(RecordedFile):
    """A file of budgets: CSV whose header names the columns."""

    name: ClassVar[str] = "budgets"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- judged by content alone
        """Say whether the header has accounts with an amount and nothing that is not known."""
        names = set(csv_table.header_names(head))
        return "account" in names and bool(names & AMOUNTS) and names <= set(COLUMNS)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.budgets`; raises IngestError for an unknown column."""
        read = read_rows(self.path, self.options, COLUMNS, ("account",), self.name, _budget)
        parsed = Parsed("budgets", frame(read.rows, BUDGETS), read.rejects)
        yield parsed.batch(source=self.name, origin=str(self.path), digest=read.digest)


def _budget(row: dict[str, str], instant: csv_table.Instant) -> dict[str, object]:
    """Return one row; ValueError says what is wrong with it."""
    if not row["account"]:
        raise ValueError("it names no account")
    if not any(row.get(name) for name in AMOUNTS):
        raise ValueError("it gives neither cost_per_month nor quota_gpus")
    return {
        "cluster": row.get("cluster") or None,
        "account": row["account"][:TEXT_MAX_CHARS],
        "cost_per_month": exact(row, "cost_per_month", 2) if row.get("cost_per_month") else None,
        "quota_gpus": exact(row, "quota_gpus") if row.get("quota_gpus") else None,
        "currency": currency(row),
        **validity(row, instant),
        "note": row.get("note", "")[:TEXT_MAX_CHARS] or None,
    }

"""Monthly budgets and GPU quotas of accounts.

    cluster,account,cost_per_month,quota_gpus,valid_from,valid_to,note
    ,nlp,120000,,2026-01-01T00:00:00Z,,approved in December
    east,nlp,,64,,,

Without a cluster a budget is for all clusters together. `currency` is as in `rates`.
"""

from typing import ClassVar

from goodput_ingest.formats import csv_table
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS
from goodput_ingest.sources.site.money import currency, exact, validity
from goodput_ingest.sources.site.rows import SiteTable

AMOUNTS = ("cost_per_month", "quota_gpus")


class Budgets(SiteTable):
    """A file of budgets."""

    name: ClassVar[str] = "budgets"
    table = "budgets"
    columns = (
        *("cluster", "account", "cost_per_month", "quota_gpus"),
        *("currency", "valid_from", "valid_to", "note"),
    )
    required = ("account",)
    any_of = frozenset(AMOUNTS)

    def row(self, row: dict[str, str], instant: csv_table.Instant) -> dict[str, object]:
        """Return one row; ValueError says what is wrong with it."""
        if not row["account"]:
            raise ValueError("it names no account")
        if not any(row.get(name) for name in AMOUNTS):
            raise ValueError("it gives neither cost_per_month nor quota_gpus")
        return {
            "cluster": row.get("cluster") or None,
            "account": row["account"][:TEXT_MAX_CHARS],
            "cost_per_month": exact(row, "cost_per_month", 2)
            if row.get("cost_per_month")
            else None,
            "quota_gpus": exact(row, "quota_gpus") if row.get("quota_gpus") else None,
            "currency": currency(row),
            **validity(row, instant),
            "note": row.get("note", "")[:TEXT_MAX_CHARS] or None,
        }

"""Prices that a site writes: what a GPU-hour costs, for whom, and from which whole hour on.

    cluster,gpu_model,mig_profile,partition,qos,price_per_gpu_h,factor,valid_from,valid_to,note
    east,H100,,,,2.85,,2026-01-01T00:00:00Z,,contract 4711
    east,,,,scavenger,,0.4,,,preemptible

An empty cell matches anything. A row gives a price, or a factor that multiplies whatever price
holds, or what a GPU of one's own cost: `purchase_cost`, `life_h`, `availability_ratio` and perhaps
`overhead_cost_per_gpu_h` make the price purchase / (life x availability) + overhead. Charges are
sums over whole hours, so a price changes on one. Amounts are in the currency of the statement;
`currency` names it, and makes sure of it. `price_class` (on-demand, reserved, spot) says what is
bought, to compare work per cost by it.
"""

from decimal import Decimal
from typing import ClassVar

from goodput_ingest.formats import csv_table, raw_tables
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS, Parsed, frame
from goodput_ingest.sources.site.money import (
    AMOUNT_MAX,
    amount,
    currency,
    exact,
    validity,
)
from goodput_ingest.sources.site.rows import SiteTable
from goodput_queries.evidence.batch import Reject

MATCHED = ("cluster", "gpu_model", "mig_profile", "partition", "qos")
OWNED = ("purchase_cost", "life_h", "availability_ratio", "overhead_cost_per_gpu_h")
AMOUNTS = ("price_per_gpu_h", "factor", "purchase_cost")
FACTORS = raw_tables.columns("rate_factors", "source")


class Rates(SiteTable):
    """A file of prices."""

    name: ClassVar[str] = "rates"
    table = "rates"
    columns = (
        *MATCHED,
        "price_per_gpu_h",
        "factor",
        *OWNED,
        "currency",
        "price_class",
        "valid_from",
        "valid_to",
        "note",
    )
    any_of = frozenset(AMOUNTS)

    def row(self, row: dict[str, str], instant: csv_table.Instant) -> dict[str, object]:
        """Return one row of either table; ValueError says what is wrong with it."""
        shared: dict[str, object] = {
            **{name: row.get(name) or None for name in MATCHED},
            **validity(row, instant),
            "price_class": row.get("price_class", "")[:TEXT_MAX_CHARS] or None,
            "note": row.get("note", "")[:TEXT_MAX_CHARS] or None,
        }
        shared["cluster"] = shared["cluster"] or self.options.cluster
        given = [name for name in AMOUNTS if row.get(name)]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise ValueError(
                f"a row gives price_per_gpu_h, factor or purchase_cost; this has {found}"
            )
        if given != ["purchase_cost"]:
            if extra := [name for name in OWNED if row.get(name)]:
                raise ValueError(f"{extra[0]} belongs to purchase_cost, which is empty")
            shared[given[0]] = exact(row, given[0])
        else:
            shared["price_per_gpu_h"] = _amortised(row)
        return shared if given == ["factor"] else {**shared, "currency": currency(row)}

    def tables(self, rows: list[dict[str, object]], rejects: list[Reject]) -> list[Parsed]:
        """Return `raw.rates`, and `raw.rate_factors` if there are any."""
        factors = [row for row in rows if "factor" in row]
        found = super().tables([row for row in rows if "price_per_gpu_h" in row], rejects)
        return [*found, Parsed("rate_factors", frame(factors, FACTORS))] if factors else found


def _amortised(row: dict[str, str]) -> Decimal:
    """Return the price of an hour of a GPU that was bought, to a millionth of a dollar."""
    purchase, life_h = amount(row, "purchase_cost"), amount(row, "life_h")
    availability = amount(row, "availability_ratio")
    if purchase is None or not life_h or not availability or availability > 1:
        raise ValueError("purchase_cost needs life_h over 0 and availability_ratio over 0, up to 1")
    overhead = amount(row, "overhead_cost_per_gpu_h") or Decimal(0)
    price = purchase / (life_h * availability) + overhead
    if price >= AMOUNT_MAX:
        raise ValueError("purchase_cost over so short a life is no price")
    return price.quantize(Decimal("0.000001"))

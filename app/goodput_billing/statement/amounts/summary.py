"""What the rows of a day come to by account: where the money went, and how it compares."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl

from goodput_billing.statement.amounts.charges import MS_PER_HOUR, known_mj
from goodput_billing.statement.amounts.ownership import HELD_LINES
from goodput_billing.statement.amounts.rounding import apportion
from goodput_billing.statement.amounts.rows import CENTS, PRICE

PRICE_DECIMALS = 6
UNIT_COSTS = {
    "cost_per_allocated_gpu_h": "gpu_ms",
    "cost_per_productive_gpu_h": "productive_ms",
}  # each of an hour of
BUCKETS = ("productive", "other_use", "own_waste", "platform_waste", "unsettled")
NOBODYS = {
    "reserved_idle": "Reserved, not used",
    "idle": "Unallocated",
    "not_available": "Not available",
}
NO_ACCOUNT = "(no account)"  # as the database calls it
Totals = dict[tuple[str, str], Decimal]


@dataclass(frozen=True)
class CoveredDay:
    """What a day came to by (cluster, account), and its milliseconds with evidence, by cluster."""

    totals: Totals
    covered_ms: Mapping[str, int]


@dataclass(frozen=True)
class Days:
    """Totals by (cluster, account) of other days than the reported one; None: no evidence that day.

    month: the days of the month so far that have evidence, the reported one included. known_parts:
    of the days beside it, by name, the part of which there is evidence.
    """

    yesterday: Totals | None
    week_ago: Totals | None
    month: Sequence[CoveredDay]
    known_parts: Mapping[str, Fraction] = field(default_factory=dict)


def account_of(row: Mapping[str, Any]) -> str:
    """Return whose a row is: an account, or what was not allocated."""
    if row["line"] in NOBODYS:
        return NOBODYS[row["line"]]
    team = row["team"] or NO_ACCOUNT
    return f"{team} (account)" if team in NOBODYS.values() else team


def totals(frame: pl.DataFrame) -> Totals:
    """Return what rows in cents come to by (cluster, account)."""
    found: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for row in frame.select("line", "cluster", "team", "total_cost").iter_rows(named=True):
        found[row["cluster"], account_of(row)] += row["total_cost"] or 0
    return dict(found)


def accounts(frame: pl.DataFrame, days: Days) -> pl.DataFrame:
    """Return one row a cluster and account: GPU time, cost by use, unit costs, comparisons.

    The costs of the five uses add up to `allocated_cost`; that, the share of idle time, electricity
    and credits add up to `total_cost`. A null is not known, or cannot be said.
    """
    groups: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in frame.iter_rows(named=True):
        groups[row["cluster"], account_of(row)].append(row)
    known = set(groups) | set(days.yesterday or {}) | set(days.week_ago or {})
    known |= {key for day in days.month for key in day.totals}
    nobodys = set(NOBODYS.values())
    order = sorted(known, key=lambda key: (key[0], key[1] in nobodys, key[1]))
    rows = [
        {"cluster": key[0], "account": key[1], "is_account": key[1] not in nobodys}
        | _sums(groups.get(key, []))
        | _compared(key, days)
        for key in order
    ]
    priced = [row | {name: unit_cost(row, of) for name, of in UNIT_COSTS.items()} for row in rows]
    return pl.DataFrame(priced, schema=SCHEMA)


def _sums(group: Iterable[dict[str, Any]]) -> dict[str, Any]:
    group = list(group)
    usage = [row for row in group if row["line"] in HELD_LINES]
    held = _money(row["direct_cost"] for row in group if row["line"] in (*HELD_LINES, *NOBODYS))
    electricity = [row["electricity_cost"] for row in group if row["electricity_cost"] is not None]
    return {
        "gpu_ms": sum(row["gpu_ms"] for row in group),
        **{f"{name}_ms": sum(row[f"{name}_ms"] for row in usage) for name in BUCKETS},
        "unpriced_ms": sum(row["gpu_ms"] for row in group if row["price_per_gpu_h"] is None),
        "energy_kwh": _kwh(group),
        **dict(zip((f"{name}_cost" for name in BUCKETS), _by_use(usage), strict=True)),
        "allocated_cost": held,
        "idle_share_cost": _money(row["idle_share_cost"] for row in group),
        "electricity_cost": _money(electricity) if electricity else None,
        "credit_cost": _money(row["direct_cost"] for row in group if row["line"] == "credit"),
        "total_cost": _money(row["total_cost"] for row in group),
    }


def _by_use(usage: Sequence[dict[str, Any]]) -> list[Decimal]:
    """Return what held time cost by use; the five add up to it, to the cent."""
    exact = [
        sum(
            int(row["price_per_gpu_h"].scaleb(PRICE_DECIMALS)) * row[f"{name}_ms"]
            for row in usage
            if row["price_per_gpu_h"] is not None
        )
        for name in BUCKETS
    ]
    cents, whole = int(_money(row["direct_cost"] for row in usage) * 100), sum(exact)
    if not whole:
        return [Decimal("0.00")] * len(BUCKETS)
    # rounded like the account's lines: parts of what they came to, not of what they cost exactly
    shares = apportion([amount * cents for amount in exact], cents, whole)
    return [Decimal(share).scaleb(-2) for share in shares]


def _compared(key: tuple[str, str], days: Days) -> dict[str, Any]:
    def of(totals: Totals | None) -> Decimal | None:
        return None if totals is None else totals.get(key, Decimal("0.00"))

    return {
        "yesterday_cost": of(days.yesterday),
        "week_ago_cost": of(days.week_ago),
        "month_cost": sum((day.totals.get(key, Decimal(0)) for day in days.month), Decimal("0.00")),
    }


def unit_cost(row: Mapping[str, Any], of: str) -> Decimal | None:
    """Return what an hour of the time in column `of` came to; null where it is not known."""
    total: Decimal | None = row["total_cost"]
    gpu_ms: int = row[of] or 0
    if total is None or not row["is_account"] or row["unpriced_ms"] or gpu_ms <= 0:
        return None
    return (total * MS_PER_HOUR / gpu_ms).quantize(Decimal("0.000001"))


def _kwh(group: Sequence[dict[str, Any]]) -> Decimal | None:
    measured = [mj for row in group if (mj := known_mj(row)) is not None]
    return Decimal(sum(measured)).scaleb(-9) / Decimal("3.6") if measured else None


def _money(amounts: Iterable[Decimal | None]) -> Decimal:
    return sum((amount for amount in amounts if amount is not None), Decimal("0.00"))


SCHEMA: dict[str, pl.DataType] = {
    "cluster": pl.String(),
    "account": pl.String(),
    "is_account": pl.Boolean(),
    "gpu_ms": pl.Int64(),
    **{f"{name}_ms": pl.Int64() for name in BUCKETS},
    "unpriced_ms": pl.Int64(),
    "energy_kwh": pl.Decimal(18, 6),
    **{f"{name}_cost": CENTS for name in BUCKETS},
    "allocated_cost": CENTS,
    "idle_share_cost": CENTS,
    "electricity_cost": CENTS,
    "credit_cost": CENTS,
    "total_cost": CENTS,
    **dict.fromkeys(UNIT_COSTS, PRICE),
    "yesterday_cost": CENTS,
    "week_ago_cost": CENTS,
    "month_cost": CENTS,
}

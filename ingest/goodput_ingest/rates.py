"""Prices that a site writes: what a GPU-hour costs, for whom, and from which whole hour on.

    gpu_model,mig_profile,partition,qos,usd_per_gpu_h,valid_from,valid_to,note
    H100,,,,2.85,2026-01-01T00:00:00Z,,contract 4711

An empty cell matches anything. Charges are sums over whole hours, so a price changes on one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from goodput_ingest import site_csv
from goodput_ingest.parsed import INSTANT, TEXT_MAX_CHARS, Parsed, frame
from goodput_queries.batch import Reject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from goodput_ingest.source import Batch, ReadOptions

COLUMNS = (
    *("gpu_model", "mig_profile", "partition", "qos"),
    *("usd_per_gpu_h", "valid_from", "valid_to", "note"),
)
MATCHED = ("gpu_model", "mig_profile", "partition", "qos")
PRICE_MAX = Decimal(10) ** 12
PRICE_DECIMALS = 6
RATES = {
    **dict.fromkeys(MATCHED, pl.String()),
    "usd_per_gpu_h": pl.Decimal(18, PRICE_DECIMALS),
    "valid_from_at": INSTANT,
    "valid_to_at": INSTANT,
    "note": pl.String(),
}


@dataclass(frozen=True)
class Rates:
    """A file of prices: CSV whose header names the columns."""

    name: ClassVar[str] = "rates"

    path: Path
    options: ReadOptions

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- judged by content alone
        """Say whether the header has a price and nothing that is not known."""
        names = set(site_csv.header_names(head))
        return "usd_per_gpu_h" in names and names <= set(COLUMNS)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.rates`; raises IngestError for an unknown column."""
        read = site_csv.read(self.path, known=COLUMNS, required=("usd_per_gpu_h",), name=self.name)
        told = f"{read.text}\n{self.options.zone}"
        digest = hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
        rejects = [
            Reject(line, f"rates: line {line} has another number of cells.", text)
            for line, text in read.odd
        ]
        rates: list[dict[str, object]] = []
        times = (row.get(name, "") for _, row in read.rows for name in ("valid_from", "valid_to"))
        instant = site_csv.clock(times, self.options.zone)
        for line, row in read.rows:
            try:
                rates.append(_rate(row, instant))
            except ValueError as error:
                content = ",".join(row.values())
                rejects.append(Reject(line, f"rates: line {line}: {error}.", content))
        parsed = Parsed("rates", frame(rates, RATES), rejects)
        yield parsed.batch(source=self.name, origin=str(self.path), digest=digest)


def _rate(row: dict[str, str], instant: Callable[[str], datetime | None]) -> dict[str, object]:
    begin, end = (_whole_hour(row, name, instant) for name in ("valid_from", "valid_to"))
    if begin is not None and end is not None and end <= begin:
        raise ValueError("valid_to is not after valid_from")
    return {
        **{name: row.get(name) or None for name in MATCHED},
        "usd_per_gpu_h": _price(row["usd_per_gpu_h"]),
        "valid_from_at": begin,
        "valid_to_at": end,
        "note": row.get("note", "")[:TEXT_MAX_CHARS] or None,
    }


def _whole_hour(
    row: dict[str, str], column: str, instant: Callable[[str], datetime | None]
) -> datetime | None:
    at = instant(row.get(column, ""))
    if at is not None and (at.minute or at.second or at.microsecond):
        raise ValueError(f"{column} {row[column]} is not a whole hour")
    return at


def _price(text: str) -> Decimal:
    """Return a price exactly as written; raises ValueError where it cannot be kept so."""
    try:
        price = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"usd_per_gpu_h {text[:40]!r} is no number") from error
    if not price.is_finite() or price < 0 or price >= PRICE_MAX:
        raise ValueError(f"usd_per_gpu_h {text[:40]!r} is no price from 0 on")
    exact = price.quantize(Decimal(1).scaleb(-PRICE_DECIMALS))
    if exact != price:
        raise ValueError(f"usd_per_gpu_h {text[:40]!r} has more than {PRICE_DECIMALS} decimals")
    return exact

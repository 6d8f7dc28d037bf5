"""Shared parsing of price, tariff, budget and carbon files: exact amounts, whole hours."""

import re
from datetime import datetime
from decimal import Decimal, InvalidOperation

from goodput_ingest.formats import csv_table

AMOUNT_MAX = Decimal(10) ** 12
DECIMALS = 6
OVERHEAD_MAX = 100


def validity(row: dict[str, str], instant: csv_table.Instant) -> dict[str, datetime | None]:
    """Return `valid_from_at` and `valid_to_at`, each a whole hour or none."""
    begin, end = (_whole_hour(row, name, instant) for name in ("valid_from", "valid_to"))
    if begin is not None and end is not None and end <= begin:
        raise ValueError("valid_to is not after valid_from")
    return {"valid_from_at": begin, "valid_to_at": end}


def currency(row: dict[str, str]) -> str | None:
    """Return the currency of a row's amounts, None where it has none."""
    code = row.get("currency", "")
    if code and not re.fullmatch("[A-Z]{3}", code):
        raise ValueError(f"currency {code[:40]!r} is not an ISO 4217 code like EUR")
    return code or None


def exact(row: dict[str, str], column: str, decimals: int = DECIMALS) -> Decimal:
    """Return an amount exactly as written; raises ValueError where it cannot be kept so."""
    found = amount(row, column)
    if found is None:
        raise ValueError(f"{column} '' is not a number")
    kept = found.quantize(Decimal(1).scaleb(-decimals))
    if kept != found:
        raise ValueError(f"{column} {row[column][:40]!r} has more than {decimals} decimals")
    return kept


def overhead(row: dict[str, str], column: str) -> Decimal:
    """Return the energy of a whole over that of a part of it: from 1 on; an empty cell is 1."""
    if not row.get(column):
        return Decimal(1)
    ratio = exact(row, column)
    if not 1 <= ratio <= OVERHEAD_MAX:
        raise ValueError(f"{column} {row[column][:40]!r} is not a ratio from 1 to {OVERHEAD_MAX}")
    return ratio


def amount(row: dict[str, str], column: str) -> Decimal | None:
    """Return an amount from 0 on, None for an empty cell; raises ValueError for anything else."""
    text = row.get(column, "")
    if not text:
        return None
    try:
        found = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"{column} {text[:40]!r} is not a number") from error
    if not found.is_finite() or found < 0 or found >= AMOUNT_MAX:
        raise ValueError(f"{column} {text[:40]!r} is not an amount from 0 on")
    return found


def _whole_hour(row: dict[str, str], column: str, instant: csv_table.Instant) -> datetime | None:
    at = instant(row.get(column, ""))
    if at is not None and (at.minute or at.second or at.microsecond):
        raise ValueError(f"{column} {row[column]} is not a whole hour")
    return at

"""The rows of a statement as a frame: exact amounts to keep, and the same in cents to hand out."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, fields
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from goodput_app.reports.charges import IDLE_LINES, Charge, Key, Quantities
from goodput_app.reports.rounding import CENT, apportion, apportion_groups, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

EXACT_DECIMALS = 12
EXACT = pl.Decimal(38, EXACT_DECIMALS)
CENTS = pl.Decimal(18, 2)
PRICE = pl.Decimal(18, 6)
UNIT = Fraction(1, 10**EXACT_DECIMALS)
AMOUNTS = ("direct_usd", "idle_share_usd", "electricity_usd")
KEYS = tuple(field.name for field in fields(Key))
QUANTITIES = tuple(field.name for field in fields(Quantities))
_PRICES = ("list_usd_per_gpu_h", "factor", "usd_per_gpu_h")
SCHEMA: dict[str, pl.DataType] = {
    **{name: PRICE if name in _PRICES else pl.String() for name in KEYS},
    "run_id": pl.String(),
    "job_name": pl.String(),
    **dict.fromkeys(QUANTITIES, pl.Int64()),
    **dict.fromkeys(AMOUNTS, EXACT),
}


def frame_of(charges: Sequence[Charge]) -> pl.DataFrame:
    """Return charges as rows of SCHEMA, amounts to a millionth of a millionth of a dollar.

    Each column of amounts adds up to its exact sum, rounded once; shares of idle time to 0.
    """
    places = [charge.key.place for charge in charges]
    direct = _in_units([charge.direct for charge in charges], places)
    idle = _in_units([charge.idle_share for charge in charges], places)
    electricity = _in_units([charge.electricity for charge in charges], places)
    rows = [
        {
            **asdict(charge.key),
            "run_id": charge.run_id,
            "job_name": charge.job_name,
            **asdict(charge.quantities),
            "direct_usd": direct[i],
            "idle_share_usd": idle[i],
            "electricity_usd": electricity[i],
        }
        for i, charge in enumerate(charges)
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _in_units(
    amounts: Sequence[Fraction | None], places: Sequence[tuple[str, ...]]
) -> list[Decimal | None]:
    """Return amounts of UNIT; groups of lines keep their sums, however fine their lines are."""
    total = nearest(sum((a for a in amounts if a is not None), Fraction(0)), UNIT)
    units = _whole(amounts, places, total, UNIT)
    return [None if u is None else Decimal(u).scaleb(-EXACT_DECIMALS) for u in units]


def exact_total(frame: pl.DataFrame) -> Fraction:
    """Return what all rows come to, before rounding."""
    return sum((_fractions_sum(frame[name]) for name in AMOUNTS), Fraction(0))


def in_cents(frame: pl.DataFrame, total: int | None = None) -> pl.DataFrame:
    """Return the rows with amounts in cents and their sum, `total_usd`.

    They add up across and down: to `total` cents, else to the exact total rounded
    once. A row without any known amount has no total.
    """
    places = [Key(**row).place for row in frame.select(KEYS).iter_rows(named=True)]
    total = nearest(exact_total(frame)) if total is None else total
    sums = [_fractions_sum(frame[name]) for name in AMOUNTS]
    shares = dict(zip(AMOUNTS, apportion(sums, total), strict=True))
    cents = {
        name: _whole(frame[name].to_list(), places, shares[name])
        for name in ("direct_usd", "electricity_usd")
    }
    cents["idle_share_usd"] = _idle_in_cents(frame, places, cents["direct_usd"])
    rows_known = zip(*(cents[name] for name in AMOUNTS), strict=True)
    totals = [
        None if direct is None and electricity is None and not idle
        else (direct or 0) + (idle or 0) + (electricity or 0)
        for direct, idle, electricity in rows_known
    ]  # fmt: skip
    return frame.with_columns(
        *(_money(name, cents[name]) for name in AMOUNTS), _money("total_usd", totals)
    )


def _whole(
    amounts: Sequence[Fraction | Decimal | None],
    places: Sequence[tuple[str, ...]],
    total: int,
    unit: Fraction = CENT,
) -> list[int | None]:
    """Return the amounts in whole units that add up to `total`; what is not known stays so."""
    known = [(i, Fraction(amount)) for i, amount in enumerate(amounts) if amount is not None]
    units: list[int | None] = [None] * len(amounts)
    if known:
        exact = [amount for _, amount in known]
        rounded = apportion_groups(exact, [places[i] for i, _ in known], total, unit)
        for (i, _), value in zip(known, rounded, strict=True):
            units[i] = value
    return units


def _idle_in_cents(
    frame: pl.DataFrame, places: Sequence[tuple[str, ...]], direct_cents: Sequence[int | None]
) -> list[int | None]:
    """Return the shares of idle time: what an idle line gave away is its cost, to the cent."""
    exact, direct = frame["idle_share_usd"].to_list(), frame["direct_usd"].to_list()
    given = [d is not None and e == -d and line in IDLE_LINES
             for line, e, d in zip(frame["line"], exact, direct, strict=True)]  # fmt: skip
    left: list[Decimal | None] = [None if g else e for g, e in zip(given, exact, strict=True)]
    away = [-(c or 0) if g else None for g, c in zip(given, direct_cents, strict=True)]
    rest = _whole(left, places, -sum(c for c in away if c is not None))
    return [r if a is None else a for a, r in zip(away, rest, strict=True)]


def digest(frame: pl.DataFrame) -> str:
    """Return what identifies the rows of a statement, to the last cent and millisecond."""
    return hashlib.blake2b(frame.write_csv().encode(), digest_size=16).hexdigest()


def _fractions_sum(amounts: Iterable[Decimal | None]) -> Fraction:
    return sum((Fraction(a) for a in amounts if a is not None), Fraction(0))


def _money(name: str, cents: Sequence[int | None]) -> pl.Series:
    values: list[Any] = [None if c is None else Decimal(c).scaleb(-2) for c in cents]
    return pl.Series(name, values, CENTS)

"""The rows of a statement as a frame: exact amounts to store, and the same in cents to deliver."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl

from goodput_billing.statement.amounts.charges import IDLE_LINES, Charge, Key, Quantities
from goodput_billing.statement.amounts.rounding import apportion, apportion_groups, nearest

EXACT_DECIMALS = 12
EXACT = pl.Decimal(38, EXACT_DECIMALS)
CENTS = pl.Decimal(18, 2)
PRICE = pl.Decimal(18, 6)
CENT = 10 ** (EXACT_DECIMALS - 2)  # in units of EXACT
NOISE = 10**3  # in units of EXACT: columns are rounded to it apart
FINER = 10**6  # fractions are first made whole numbers of EXACT / FINER
AMOUNTS = ("direct_cost", "idle_share_cost", "electricity_cost")
KEYS = tuple(field.name for field in fields(Key))
QUANTITIES = tuple(field.name for field in fields(Quantities))
_PRICES = ("list_price_per_gpu_h", "factor", "price_per_gpu_h")
OF_ADJUSTMENTS: dict[str, pl.DataType] = {
    "adjustment_id": pl.String(),
    "reason": pl.String(),
    "for_day": pl.Date(),
}
SCHEMA: dict[str, pl.DataType] = {
    **{name: PRICE if name in _PRICES else pl.String() for name in KEYS},
    "run_id": pl.String(),
    "job_name": pl.String(),
    **dict.fromkeys(QUANTITIES, pl.Int64()),
    **dict.fromkeys(AMOUNTS, EXACT),
    **OF_ADJUSTMENTS,
}


def frame_of(charges: Sequence[Charge]) -> pl.DataFrame:
    """Return charges as rows of SCHEMA, amounts to a millionth of a millionth of a dollar.

    Each column of amounts adds up to its exact sum, rounded once; shares of idle time to 0.
    """
    places = [charge.key.place for charge in charges]
    columns: dict[str, list[Any]] = {
        **{name: [getattr(charge.key, name) for charge in charges] for name in KEYS},
        "run_id": [charge.run_id for charge in charges],
        "job_name": [charge.job_name for charge in charges],
        **{name: [getattr(charge.quantities, name) for charge in charges] for name in QUANTITIES},
        "direct_cost": _exact([charge.direct for charge in charges], places),
        "idle_share_cost": _exact([charge.idle_share for charge in charges], places),
        "electricity_cost": _exact([charge.electricity for charge in charges], places),
        **{name: [None] * len(charges) for name in OF_ADJUSTMENTS},
    }
    return pl.DataFrame(columns, schema=SCHEMA)


def _exact(
    amounts: Sequence[Fraction | None], places: Sequence[tuple[str, ...]]
) -> list[Decimal | None]:
    """Return amounts as EXACT; groups of lines keep their sums, however fine their lines are."""
    scale = FINER * 10**EXACT_DECIMALS
    fine = [None if a is None else a.numerator * scale // a.denominator for a in amounts]
    total = sum((a for a in amounts if a is not None), Fraction(0))
    units = _whole(fine, places, nearest(round(total * scale), FINER), FINER)
    return [None if u is None else Decimal(u).scaleb(-EXACT_DECIMALS) for u in units]


def exact_total(frame: pl.DataFrame) -> int:
    """Return what all rows come to before rounding, in units of EXACT."""
    return sum(sum(u for u in _units(frame[name]) if u is not None) for name in AMOUNTS)


def cents_of(units: int, smallest: int = 1) -> int:
    """Return units of EXACT in cents, rounded once to a multiple of `smallest` cents."""
    return nearest(units, CENT * smallest) * smallest


def in_cents(frame: pl.DataFrame, total: int | None = None, *, smallest: int = 1) -> pl.DataFrame:
    """Return the rows with amounts in cents and their sum, `total_cost`.

    They add up across and down: to `total` cents, else to the exact total rounded
    once. A row without any known amount has no total. smallest: amounts are multiples of so many
    cents (`currency.smallest_cents`), where `total` is one.
    """
    if total is not None and total % smallest:
        smallest = 1  # a correction to what was billed in hundredths
    unit = CENT * smallest
    places = [Key(**row).place for row in frame.select(KEYS).iter_rows(named=True)]
    exact = {name: _units(frame[name]) for name in AMOUNTS}
    sums = [sum(u for u in exact[name] if u is not None) for name in AMOUNTS]
    whole = nearest(sum(sums), unit) if total is None else total // smallest
    shares = dict(zip(AMOUNTS, apportion(sums, whole, unit), strict=True))
    cents = {
        name: _whole(exact[name], places, shares[name], unit)
        for name in ("direct_cost", "electricity_cost")
    }
    cents["idle_share_cost"] = _idle_in_cents(
        frame["line"], exact, places, cents["direct_cost"], unit
    )
    cents = {
        name: [None if c is None else c * smallest for c in column]
        for name, column in cents.items()
    }
    rows_known = zip(*(cents[name] for name in AMOUNTS), strict=True)
    totals = [
        None if direct is None and electricity is None and not idle
        else (direct or 0) + (idle or 0) + (electricity or 0)
        for direct, idle, electricity in rows_known
    ]  # fmt: skip
    return frame.with_columns(
        *(_money(name, cents[name]) for name in AMOUNTS), _money("total_cost", totals)
    )


def _whole(
    amounts: Sequence[int | None], places: Sequence[tuple[str, ...]], total: int, unit: int
) -> list[int | None]:
    """Return the amounts in whole units that add up to `total`; what is not known stays so."""
    known = [i for i, amount in enumerate(amounts) if amount is not None]
    found: list[int | None] = [None] * len(amounts)
    if known:
        exact = [amount for amount in amounts if amount is not None]
        rounded = apportion_groups(exact, [places[i] for i in known], total, unit)
        for i, value in zip(known, rounded, strict=True):
            found[i] = value
    return found


def _idle_in_cents(
    lines: Iterable[str],
    exact: Mapping[str, Sequence[int | None]],
    places: Sequence[tuple[str, ...]],
    direct_cents: Sequence[int | None],
    unit: int,
) -> list[int | None]:
    """Return the shares of idle time: what an idle line gave away is its cost, to the cent."""
    shares, direct = exact["idle_share_cost"], exact["direct_cost"]
    away = [
        -cents if cents is not None and line in IDLE_LINES and _is_all(share, cost) else None
        for line, share, cost, cents in zip(lines, shares, direct, direct_cents, strict=True)
    ]
    kept = [share if gone is None else None for gone, share in zip(away, shares, strict=True)]
    rest = _whole(kept, places, -sum(gone for gone in away if gone is not None), unit)
    return [carried if gone is None else gone for gone, carried in zip(away, rest, strict=True)]


def _is_all(share: int | None, cost: int | None) -> bool:
    """Say whether a line gave all of its cost away."""
    return abs((share or 0) + (cost or 0)) <= NOISE


def _units(amounts: pl.Series) -> list[int | None]:
    """Return a column of EXACT as whole numbers of its last decimal."""
    return [None if a is None else int(a.scaleb(EXACT_DECIMALS)) for a in amounts.to_list()]


def digest(frame: pl.DataFrame) -> str:
    """Return what identifies the rows of a statement, to the last cent and millisecond.

    Columns of credits count where a row has them: rows of before they existed keep their digest.
    """
    found = hashlib.blake2b(digest_size=16)
    charged, credited = frame.drop(*OF_ADJUSTMENTS), frame.select(*OF_ADJUSTMENTS)
    for row, more in zip(charged.iter_rows(), credited.iter_rows(), strict=True):
        values = row if more[0] is None else (*row, *more)
        found.update("\x1f".join(map(_plain, values)).encode())
        found.update(b"\x1e")
    return found.hexdigest()


def _plain(value: object) -> str:
    """Return a value in a form that no library's release changes: digests are kept for years."""
    return "\x00" if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)


def _money(name: str, cents: Sequence[int | None]) -> pl.Series:
    values: list[Any] = [None if c is None else Decimal(c).scaleb(-2) for c in cents]
    return pl.Series(name, values, CENTS)

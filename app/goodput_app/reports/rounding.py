"""Rounding money so that rows still add up: largest remainders, from the total down to the rows."""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CENT = Fraction(1, 100)


def nearest(amount: Fraction, unit: Fraction = CENT) -> int:
    """Return the amount in whole units, a half away from zero: what people expect of money."""
    units = abs(amount) / unit
    whole = (2 * units.numerator + units.denominator) // (2 * units.denominator)
    return whole if amount >= 0 else -whole


def apportion(amounts: Sequence[Fraction], total: int, unit: Fraction = CENT) -> list[int]:
    """Return the amounts in whole units that add up to `total`.

    The rows with the largest remainders are rounded up; of equal ones the first. No row is off by a
    unit where `total` is within a unit of the amounts' sum; what is more is spread over all rows.
    """
    if not amounts:
        return []
    floors = [amount // unit for amount in amounts]
    to_all, left = divmod(total - sum(floors), len(amounts))
    by_remainder = sorted(range(len(amounts)), key=lambda i: floors[i] * unit - amounts[i])
    raised = set(by_remainder[:left])
    return [floor + to_all + (i in raised) for i, floor in enumerate(floors)]


def apportion_groups(
    amounts: Sequence[Fraction],
    places: Sequence[tuple[str, ...]],
    total: int,
    unit: Fraction = CENT,
) -> list[int]:
    """Return the amounts in whole units that add up to `total`, every group nearly to its own sum.

    places: for each amount the groups it is in, outermost first, all of one length, in order: equal
    beginnings stand together. Units are given to the outermost groups first, then inside each: a
    thousand small rows of one account make up what the account owes, not what chance leaves it.
    """
    if len(amounts) <= 1 or not places[0]:
        return apportion(amounts, total, unit)
    groups = [list(group) for _, group in groupby(range(len(places)), key=lambda i: places[i][0])]
    sums = [sum((amounts[i] for i in group), Fraction(0)) for group in groups]
    result: list[int] = []
    for group, share in zip(groups, apportion(sums, total, unit), strict=True):
        inner = [amounts[i] for i in group]
        result += apportion_groups(inner, [places[i][1:] for i in group], share, unit)
    return result

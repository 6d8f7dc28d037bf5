"""Rounding money so that rows still add up: largest remainders, from the total down to the rows.

Amounts are whole numbers of something very small, and `unit` says how many of it make the unit that
is printed: exact where floating point is not, and fast where fractions are slow.
"""

from collections.abc import Sequence
from itertools import groupby


def nearest(amount: int, unit: int) -> int:
    """Return the amount in whole units, a half away from zero: what people expect of money."""
    whole = (2 * abs(amount) + unit) // (2 * unit)
    return whole if amount >= 0 else -whole


def apportion(amounts: Sequence[int], total: int, unit: int) -> list[int]:
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
    amounts: Sequence[int], places: Sequence[tuple[str, ...]], total: int, unit: int
) -> list[int]:
    """Return the amounts in whole units that add up to `total`, every group nearly to its own sum.

    places: for each amount the groups it is in, outermost first, all of one length, in order: equal
    beginnings stand together. Units are given to the outermost groups first, then inside each: a
    thousand small rows of one account make up what the account owes, not what chance leaves it.
    """
    if len(amounts) <= 1 or not places[0]:
        return apportion(amounts, total, unit)
    groups = [list(group) for _, group in groupby(range(len(places)), key=lambda i: places[i][0])]
    if len(groups) == 1:
        return apportion_groups(amounts, [place[1:] for place in places], total, unit)
    sums = [sum(amounts[i] for i in group) for group in groups]
    result: list[int] = []
    for group, share in zip(groups, apportion(sums, total, unit), strict=True):
        inner, rest = [amounts[i] for i in group], [places[i][1:] for i in group]
        result += apportion_groups(inner, rest, share, unit)
    return result

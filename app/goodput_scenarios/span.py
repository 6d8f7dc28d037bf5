"""A quantity between two bounds, exact: what the evidence leaves open stays open in an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

DIGITS = 5  # of the numbers of a formula, so that a reader gets its result from them
Amount = Decimal | int


@dataclass(frozen=True)
class Span:
    """All values from `lo` to `hi`; equal where it is known. Raises ValueError for `lo` > `hi`."""

    lo: Decimal
    hi: Decimal

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise ValueError(f"a span from {self.lo} to {self.hi} is none")

    @classmethod
    def of(cls, value: Decimal | int | str) -> Span:
        """Return what is known exactly."""
        exact = Decimal(value)
        return cls(exact, exact)

    @classmethod
    def over(cls, *values: Decimal) -> Span:
        """Return the narrowest span that holds all of these."""
        return cls(min(values), max(values))

    def __add__(self, other: Span) -> Span:
        return Span(self.lo + other.lo, self.hi + other.hi)

    def __sub__(self, other: Span | Amount) -> Span:
        other = _exact(other)
        return Span(self.lo - other.hi, self.hi - other.lo)

    def __rsub__(self, other: Amount) -> Span:
        return _exact(other) - self

    def __mul__(self, other: Span | Amount) -> Span:
        other = _exact(other)
        return Span.over(*(a * b for a in (self.lo, self.hi) for b in (other.lo, other.hi)))

    def __rtruediv__(self, other: Amount) -> Span:
        return _exact(other) / self

    def __truediv__(self, other: Span | Amount) -> Span:
        """Divide; raises ZeroDivisionError where the divisor may be 0."""
        other = _exact(other)
        if other.lo <= 0 <= other.hi:
            raise ZeroDivisionError("the divisor may be 0")
        return Span.over(*(a / b for a in (self.lo, self.hi) for b in (other.lo, other.hi)))

    def __format__(self, decimals: str) -> str:
        """Return a span as people check it: `20.0`, `12.5 to 14.0`; small ones with more decimals.

        decimals: two where it is empty
        """
        low, high = (_shown(float(end), int(decimals or 2)) for end in (self.lo, self.hi))
        return low if low == high else f"{low} to {high}"

    def at_least(self, least: Decimal) -> Span:
        """Return the span with nothing below `least`."""
        return Span(max(self.lo, least), max(self.hi, least))

    def at_most(self, most: Decimal) -> Span:
        """Return the span with nothing above `most`."""
        return Span(min(self.lo, most), min(self.hi, most))


def _exact(value: Span | Amount) -> Span:
    return value if isinstance(value, Span) else Span.of(value)


def _shown(value: float, decimals: int) -> str:
    """Return a number with so many decimals, or more where it has less than DIGITS digits.

    Zeros at its end are cut down to `decimals`, below 1 to two digits: 0.0 has no sense.
    """
    if value == 0:
        return f"{value:,.{decimals}f}"
    first = math.floor(math.log10(abs(value)))
    least = max(decimals, 1 - first) if first < 0 else decimals
    shown = f"{value:,.{max(least, DIGITS - 1 - first)}f}"
    whole, _, fraction = shown.partition(".")
    kept = fraction[:least] + fraction[least:].rstrip("0")
    return f"{whole}.{kept}" if kept else whole

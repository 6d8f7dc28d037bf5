"""A quantity between two bounds, exact: what the evidence leaves open stays open in an answer."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


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

    def __sub__(self, other: Span) -> Span:
        return Span(self.lo - other.hi, self.hi - other.lo)

    def __mul__(self, other: Span) -> Span:
        return Span.over(*(a * b for a in (self.lo, self.hi) for b in (other.lo, other.hi)))

    def __truediv__(self, other: Span) -> Span:
        """Divide; raises ZeroDivisionError where the divisor may be 0."""
        if other.lo <= 0 <= other.hi:
            raise ZeroDivisionError("the divisor may be 0")
        return Span.over(*(a / b for a in (self.lo, self.hi) for b in (other.lo, other.hi)))

    def at_least(self, least: Decimal) -> Span:
        """Return the span with nothing below `least`."""
        return Span(max(self.lo, least), max(self.hi, least))

    def at_most(self, most: Decimal) -> Span:
        """Return the span with nothing above `most`."""
        return Span(min(self.lo, most), min(self.hi, most))

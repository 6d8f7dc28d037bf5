"""The hours that a build recomputes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass

HOUR_MS = 3_600_000
Hours = Set[int]  # since the epoch


@dataclass(frozen=True)
class DirtyHours:
    """A set of hours, or every hour, whichever there are."""

    hours: frozenset[int] = frozenset()
    is_every: bool = False

    def __bool__(self) -> bool:
        """Say whether there is any."""
        return self.is_every or bool(self.hours)

    def __or__(self, other: DirtyHours) -> DirtyHours:
        """Return what is in either."""
        return DirtyHours(self.hours | other.hours, self.is_every or other.is_every)

    def within(self, hours: Collection[int]) -> DirtyHours:
        """Return what lies in these hours."""
        return DirtyHours(frozenset(hours) if self.is_every else self.hours & frozenset(hours))


NOTHING = DirtyHours()
EVERY = DirtyHours(is_every=True)


def ranges(hours: Iterable[int], most: int) -> list[tuple[int, int]]:
    """Return hours as half-open ranges of at most `most` hours."""
    found: list[tuple[int, int]] = []
    for hour in sorted(hours):
        if found and found[-1][1] == hour and hour - found[-1][0] < most:
            found[-1] = (found[-1][0], hour + 1)
        else:
            found.append((hour, hour + 1))
    return found

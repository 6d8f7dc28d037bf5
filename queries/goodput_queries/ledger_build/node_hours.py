"""Node-hours: the hours that a build recomputes, of all nodes or of some."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

HOUR_MS = 3_600_000
Node = tuple[str, str]  # cluster, node
Hours = Set[int]  # since the epoch


class NodeHours:
    """A set of hours, each of all nodes or of some; or every hour, whichever there are."""

    def __init__(
        self,
        whole: Iterable[int] = (),
        of_nodes: Iterable[tuple[int, Node]] = (),
        *,
        is_every: bool = False,
    ) -> None:
        self.is_every = is_every
        self.whole = frozenset(whole)
        nodes: dict[int, set[Node]] = {}
        for hour, node in of_nodes:
            if hour not in self.whole:
                nodes.setdefault(hour, set()).add(node)
        self.of_nodes: Mapping[int, Set[Node]] = nodes

    @property
    def hours(self) -> frozenset[int]:
        """Return the hours, of whichever nodes."""
        return self.whole | self.of_nodes.keys()

    def __bool__(self) -> bool:
        """Say whether there is any."""
        return self.is_every or bool(self.hours)

    def __or__(self, other: NodeHours) -> NodeHours:
        """Return what is in either."""
        both = (*self._pairs(), *other._pairs())
        return NodeHours(self.whole | other.whole, both, is_every=self.is_every or other.is_every)

    def within(self, hours: Collection[int]) -> NodeHours:
        """Return what lies in these hours."""
        if self.is_every:
            return NodeHours(hours)
        return NodeHours(
            (hour for hour in self.whole if hour in hours),
            ((hour, node) for hour, node in self._pairs() if hour in hours),
        )

    def of_all_nodes(self) -> NodeHours:
        """Return the same hours of all nodes."""
        return NodeHours(self.hours, is_every=self.is_every)

    def _pairs(self) -> Iterator[tuple[int, Node]]:
        return ((hour, node) for hour, nodes in self.of_nodes.items() for node in nodes)


NOTHING = NodeHours()
EVERY = NodeHours(is_every=True)


def ranges(hours: Iterable[int], most: int) -> list[tuple[int, int]]:
    """Return hours as half-open ranges of at most `most` hours."""
    found: list[tuple[int, int]] = []
    for hour in sorted(hours):
        if found and found[-1][1] == hour and hour - found[-1][0] < most:
            found[-1] = (found[-1][0], hour + 1)
        else:
            found.append((hour, hour + 1))
    return found

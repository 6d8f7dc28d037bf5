"""Node-hours: the hours that a build recomputes, of all nodes or of some."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

HOUR_MS = 3_600_000
Node = tuple[str, str]  # cluster, node
Hours = set[int]  # since the epoch


class NodeHours:
    """A set of hours, each of all nodes or of some."""

    def __init__(
        self, whole: Iterable[int] = (), of_nodes: Iterable[tuple[int, Node]] = ()
    ) -> None:
        self.whole: Hours = set(whole)
        self.of_nodes: dict[int, set[Node]] = defaultdict(set)
        for hour, node in of_nodes:
            if hour not in self.whole:
                self.of_nodes[hour].add(node)

    @property
    def hours(self) -> Hours:
        """Return the hours, of whichever nodes."""
        return self.whole | self.of_nodes.keys()

    def __or__(self, other: NodeHours) -> NodeHours:
        """Return what is in either."""
        both = [
            (h, n) for part in (self, other) for h, nodes in part.of_nodes.items() for n in nodes
        ]
        return NodeHours(self.whole | other.whole, both)

    def within(self, hours: Container[int]) -> NodeHours:
        """Return what lies in these hours."""
        found = NodeHours(hour for hour in self.whole if hour in hours)
        found.of_nodes.update({h: nodes for h, nodes in self.of_nodes.items() if h in hours})
        return found

    def of_all_nodes(self) -> NodeHours:
        """Return the same hours of all nodes."""
        return NodeHours(self.hours)


def ranges(hours: Iterable[int], most: int) -> list[tuple[int, int]]:
    """Return hours as half-open ranges of at most `most` hours."""
    found: list[tuple[int, int]] = []
    for hour in sorted(hours):
        if found and found[-1][1] == hour and hour - found[-1][0] < most:
            found[-1] = (found[-1][0], hour + 1)
        else:
            found.append((hour, hour + 1))
    return found

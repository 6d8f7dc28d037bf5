"""How many evaluations run in the background: each kind counts its own.

A server asks without importing what evaluates, which needs the runtime of pages.
"""

from collections.abc import Callable

_counts: dict[str, Callable[[], int]] = {}


def count_with(name: str, count: Callable[[], int]) -> None:
    """Let a kind of evaluation count those of its own that have not ended."""
    _counts[name] = count


def running() -> int:
    """Return how many evaluations run or wait for a thread."""
    return sum(count() for count in _counts.values())

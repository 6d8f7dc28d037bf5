"""Reading one part ahead: a second thread parses while the store writes the part before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items; the next one is made in another thread meanwhile, and no more than that.

    What making an item raises is raised here, after the items before it.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="parse") as parser:
        coming = parser.submit(_next, items)
        while found := coming.result():
            coming = parser.submit(_next, items)
            yield found[0]


def _next(items: Iterator[T]) -> tuple[T] | None:
    for item in items:
        return (item,)
    return None

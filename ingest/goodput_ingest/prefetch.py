"""Prefetch: a second thread parses the next part while the store writes the current one."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetch(
    items: Iterator[T], size: Callable[[T], int] = lambda _: 1, most: int = 1
) -> Iterator[T]:
    """Yield the items; a second thread computes the next one meanwhile.

    With `size` it computes items until their total size is `most`: otherwise, during a big item
    that takes long to use, it would compute only the small one after it. An error in an item is
    raised here, after the items before it.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="parse") as parser:
        coming = parser.submit(_next, items, size, most)
        while True:
            found, error = coming.result()
            if found and error is None:
                coming = parser.submit(_next, items, size, most)
            yield from found
            if error is not None:
                raise error
            if not found:
                return


def _next(
    items: Iterator[T], size: Callable[[T], int], most: int
) -> tuple[list[T], BaseException | None]:
    found, held = list[T](), 0
    try:
        for item in items:
            found.append(item)
            held += size(item)
            if held >= most:
                break
    except BaseException as error:
        return found, error
    return found, None

"""Distinct combinations of small numbers, without sorting where a table of all of them is small."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

CELLS_PER_KEY: Final = 8  # a table of all combinations may be this much larger than the list


def rows_of(key: NDArray[np.int64], cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each key the row of its value in the list of distinct values, and that list.

    key: numbers from 0 up to `cells`, not included
    """
    if cells > CELLS_PER_KEY * len(key):
        distinct, row = np.unique(key, return_inverse=True)
        return row, distinct
    is_there = np.zeros(cells, dtype=bool)
    is_there[key] = True
    number = np.cumsum(is_there) - 1
    return number[key], np.flatnonzero(is_there)

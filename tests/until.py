"""Wait for something that another thread or process does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 180.0
LOOK_EVERY_S = 0.02


def until(holds: Callable[[], object], what: str, *, within_s: float = PATIENCE_S) -> None:
    """Return once a condition holds; fail where it does not within the limit."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {within_s:g} s in vain until {what}")
        time.sleep(LOOK_EVERY_S)

"""Wait for something that another thread or process does."""

import time

import pytest

PATIENCE_S = 180.0
LOOK_EVERY_S = 0.02


def until(holds, what, *, within_s=PATIENCE_S, every_s=LOOK_EVERY_S):
    """Return once a condition holds; fail where it does not within the limit.

    every_s: between two looks, longer where a look takes time itself
    """
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {within_s:g} s in vain until {what}")
        time.sleep(every_s)

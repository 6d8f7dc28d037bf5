"""Data of others, named by $GOODPUT_EXTERNAL_DATA; what reads it is skipped where it is missing."""

import os
from pathlib import Path

import pytest

EXTERNAL = Path(os.environ.get("GOODPUT_EXTERNAL_DATA", "nowhere"))
CAPTURE = EXTERNAL.parent / "captures" / "h200x4-a"  # a recorded session with injected faults


def reading(path, *marks):
    """Return the marks of a module that reads this path of others' data."""
    is_missing = not path.exists()
    skipped = pytest.mark.skipif(is_missing, reason="needs $GOODPUT_EXTERNAL_DATA")
    return [pytest.mark.external, skipped, *marks]

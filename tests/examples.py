"""How many random examples a test tries that builds a database for each of them."""

from __future__ import annotations

import os

MORE = "GOODPUT_EXAMPLES"


def examples(few: int) -> int:
    """Return `few`, or as many times that as the environment says: `make oracle` tries more."""
    return few * int(os.environ.get(MORE, "1"))

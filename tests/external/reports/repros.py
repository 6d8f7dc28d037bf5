"""The folder of cases made after reports, beside the external data, and what all of them read."""

import functools
import os
from pathlib import Path

import pytest

from goodput_queries.ledger import ledger

DATA = os.environ.get("GOODPUT_EXTERNAL_DATA")
REPROS = Path(DATA).parent / "repros" if DATA else Path()
NEEDED = [
    pytest.mark.external,
    pytest.mark.skipif(not DATA, reason="GOODPUT_EXTERNAL_DATA names no folder"),
    pytest.mark.skipif(
        bool(DATA) and not REPROS.is_dir(), reason=f"there are no cases in {REPROS}"
    ),
]


@functools.cache
def _rows(store, by):
    return ledger(store, by=by).rows()


def gpu_s(store, *by, cluster):
    """Return GPU-seconds of a cluster of a built store by these keys, joined by a space."""
    keys = by or ("category",)
    rows = [row[1:] for row in _rows(store, ("cluster", *keys)) if row[0] == cluster]
    return {" ".join(str(v) for v in row[: len(keys)]): row[-3] for row in rows}

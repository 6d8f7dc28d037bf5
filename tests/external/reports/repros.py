"""The folder of cases made after reports, beside the external data, and what all of them read."""

import os
from pathlib import Path

import pytest

from goodput_queries.ledger import ledger
from goodput_queries.scope import Scope

DATA = os.environ.get("GOODPUT_EXTERNAL_DATA")
REPROS = Path(DATA).parent / "repros" if DATA else Path()
NEEDED = [
    pytest.mark.external,
    pytest.mark.skipif(not DATA, reason="GOODPUT_EXTERNAL_DATA names no folder"),
    pytest.mark.skipif(
        bool(DATA) and not REPROS.is_dir(), reason=f"there are no cases in {REPROS}"
    ),
]


def gpu_s(store, *by, cluster=None):
    """Return GPU-seconds of a built store by these keys, joined by a space."""
    frame = ledger(store, by=by or ("category",), scope=Scope(cluster=cluster))
    return {" ".join(str(v) for v in row[: len(by) or 1]): row[-3] for row in frame.rows()}

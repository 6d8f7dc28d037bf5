"""One writer of statements and credits at a time: what it has read still holds when it writes.

A day closes with the credits that no closed day has. Two closers, in the server and in a command
that goes through it, would each find the same credit, and book it on two days.
"""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from goodput_queries.database import Store
from goodput_queries.storage.file_lock import hold_lock_file

SUFFIX = ".billing.lock"
WAIT_S = 600.0  # closing a day builds the ledger

_of_this_process = threading.Lock()  # of a database in memory, which no other process opens


@contextlib.contextmanager
def billing_lock(store: Store) -> Iterator[None]:
    """Let nobody else close days or write credits of this database for the length of a block.

    Raises StoreError where somebody else does for longer than `WAIT_S`.
    """
    path = Path(getattr(store, "path", ""))
    if not path.is_file():
        with _of_this_process:
            yield
        return
    with hold_lock_file(path.with_name(path.name + SUFFIX), _refusal, wait_s=WAIT_S):
        yield


def _refusal(pid: str) -> str:
    return (
        f"process {pid} has been closing statements for {WAIT_S / 60:.0f} minutes: stop that "
        "process first, or try again later."
    )

"""Files of this process that only its user may read: the database and the files next to it.

DuckDB makes the file, its write-ahead log and temporary files when it needs them, so that the mode
is that of the process (umask). What is written for others is made within `for_others`.
"""

import contextlib
import os
import threading
from collections.abc import Iterator

PRIVATE = 0o077  # what others may not
_given: int | None = None  # the umask with which the process began
_lock = threading.RLock()


def keep_private() -> None:
    """Let files that this process makes from now on be readable by its user only."""
    global _given  # noqa: PLW0603 -- a umask is one of the process, too
    with _lock:
        if _given is None:
            _given = os.umask(PRIVATE)
            os.umask(PRIVATE | _given)


@contextlib.contextmanager
def for_others() -> Iterator[None]:
    """Make files and folders with the rights that the process was given."""
    if _given is None:
        yield
        return
    with _lock:
        before = os.umask(_given)
        try:
            yield
        finally:
            os.umask(before)

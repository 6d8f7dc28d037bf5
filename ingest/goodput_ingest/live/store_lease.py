"""Access of the poll loop to the database: open permanently, or only during a write.

DuckDB allows one process to write a file. Without a server the loop closes the file between polls,
so that commands and a starting server can open it; with a server the loop writes through that.
"""

import contextlib
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from goodput_queries.database import LocalStore, Store, open_store
from goodput_queries.errors import StoreError
from goodput_queries.storage.file_lock import hold_lock_file, is_held
from goodput_queries.storage.opening import IN_MEMORY

OPEN_WAIT_S = 5.0  # for a command that has the file; after that the poll counts as failed


class Stores(Protocol):
    """Provides the poll loop with the store for a read or a load."""

    def lease(self) -> AbstractContextManager[Store]:
        """Return the store for a block; raises StoreError where it cannot be opened."""


class Held:
    """A store that its owner, the server, opens and closes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @contextlib.contextmanager
    def lease(self) -> Iterator[Store]:
        """Give the store."""
        yield self._store


class Shared:
    """A database that other processes open too; safe to use from several threads."""

    def __init__(self, path: str | Path, *, wait_s: float = OPEN_WAIT_S) -> None:
        self._path = path
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._users = 0

    @contextlib.contextmanager
    def lease(self) -> Iterator[Store]:
        """Return the store; its last user closes a file, a failed server is disconnected."""
        with self._lock:
            if self._store is None:
                self._store = open_store(self._path, wait_s=self._wait_s)
            store = self._store
            self._users += 1
        is_failed = False
        try:
            yield store
        except StoreError:
            is_failed = True
            raise
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0 and (is_failed or isinstance(store, LocalStore)):
                    self._close()

    def close(self) -> None:
        """Close the connection to a server."""
        with self._lock:
            if self._users == 0:
                self._close()

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


@contextlib.contextmanager
def collector_lock(database: str | Path) -> Iterator[None]:
    """Allow one collecting process a database; the lock of a killed one ends with it.

    Raises StoreError naming the process that does already: two would scrape everything twice.
    """
    if str(database) == IN_MEMORY:
        yield
        return
    path = _lock_path(database)

    def refusal(pid: str) -> str:
        return (
            f"{path.with_suffix('')}: process {pid} collects into this database already. Stop "
            "that process first."
        )

    with hold_lock_file(path, refusal):
        yield


def is_collected(database: str | Path) -> bool:
    """Say whether a process collects into the database now."""
    return is_held(_lock_path(database))


def _lock_path(database: str | Path) -> Path:
    resolved = Path(database).resolve()
    return resolved.with_name(f"{resolved.name}.collecting")

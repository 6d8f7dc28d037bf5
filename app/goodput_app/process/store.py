"""The one store of this process, for pages and routes alike."""

import os
import threading

from goodput_app.settings import settings
from goodput_queries.database import Store, open_store

DATABASE_VARIABLE = "GOODPUT_DB"

_lock = threading.Lock()
_store: Store | None = None


def use_store(store: Store | None) -> None:
    """Make `store` the one that pages read from; None forgets it."""
    global _store  # noqa: PLW0603 -- one database a process is the point of this module
    with _lock:
        _store = store


def current_store() -> Store:
    """Return the store in use; outside of `goodput serve` `$GOODPUT_DB` is opened, once."""
    global _store  # noqa: PLW0603 -- as above
    with _lock:
        if _store is None:
            path = os.environ.get(DATABASE_VARIABLE) or settings().db
            _store = open_store(path, **settings().store_options)
        return _store

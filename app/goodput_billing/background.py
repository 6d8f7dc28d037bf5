"""Work in the background of a block, which ends with it."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)

GRACE_S = 5.0  # for what is under way when the server ends


@contextlib.contextmanager
def in_background(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run `work` in a thread during a block; the event that it is given is set at the end."""
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(GRACE_S)
        if thread.is_alive():
            log.warning("still running: %s", name)

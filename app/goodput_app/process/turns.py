"""Turns of a server's threads: an answer of `/api/v1` takes milliseconds, a page seconds."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

import polars as pl

# how long a thread has the interpreter while others wait: a page waits at thousands of calls of
# Polars and DuckDB; with Python's own 5 ms, twenty people get two thirds as many pages
TURN_S = 0.0005
PAGES_NICE = 10  # a tenth of the share of a core that a thread which answers has

_is_server = threading.Event()


@contextlib.contextmanager
def of_a_server() -> Iterator[None]:
    """Give threads short turns for the length of a block, and those of pages the later ones."""
    pl.thread_pool_size()  # Polars' threads begin here: they have the priority of who asks first
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN_S)
    _is_server.set()
    try:
        yield
    finally:
        _is_server.clear()
        sys.setswitchinterval(before)


def after_answers() -> None:
    """Let this thread, which draws a page, run after those that answer requests.

    Linux alone has priorities of threads; one that is lower already stays, and so does the first
    thread, in which requests are received.
    """
    is_first = threading.current_thread() is threading.main_thread()
    if _is_server.is_set() and sys.platform == "linux" and not is_first:
        thread = threading.get_native_id()
        if os.getpriority(os.PRIO_PROCESS, thread) < PAGES_NICE:
            os.setpriority(os.PRIO_PROCESS, thread, PAGES_NICE)

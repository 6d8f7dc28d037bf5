"""Turns of a server's threads: a kept answer takes milliseconds, whatever is evaluated seconds."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import polars as pl

# how long a thread has the interpreter while others wait: a page waits at thousands of calls of
# Polars and DuckDB; with Python's own 5 ms, twenty people get two thirds as many pages
TURN_S = 0.0005
LATER_NICE = 10  # a tenth of the share of a core that the thread has which receives requests

_is_server = threading.Event()
Made = TypeVar("Made")


@contextlib.contextmanager
def of_a_server() -> Iterator[None]:
    """Give threads short turns for the length of a block, and all but the first the later ones."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN_S)
    _is_server.set()
    try:
        with_later_threads(pl.thread_pool_size)  # Polars' threads begin here
        yield
    finally:
        _is_server.clear()
        sys.setswitchinterval(before)


def with_later_threads(make: Callable[[], Made]) -> Made:
    """Return what is made, whose own threads get the priority of those that evaluate.

    Threads of DuckDB and Polars have that of who begins them. At a higher one they keep from its
    core a thread that draws a page and has the interpreter, for which all others wait.
    """
    with ThreadPoolExecutor(1, initializer=come_later) as thread:
        return thread.submit(make).result()


def come_later() -> None:
    """Let this thread, which evaluates, run after the one that receives requests.

    Linux alone has priorities of threads; one that is lower already stays, and so does the first
    thread, in which requests are received and kept answers are given.
    """
    is_first = threading.current_thread() is threading.main_thread()
    if _is_server.is_set() and sys.platform == "linux" and not is_first:
        thread = threading.get_native_id()
        if os.getpriority(os.PRIO_PROCESS, thread) < LATER_NICE:
            os.setpriority(os.PRIO_PROCESS, thread, LATER_NICE)

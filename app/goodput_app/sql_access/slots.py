"""How many selects run at once, of all and of one person."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator

from goodput_app.process.usage import BusyError

WAIT_S = 10.0
WAITING_MAX = 24  # a dashboard of Grafana; each waits in one of the server's 40 threads


class Slots:
    """Places for selects that run."""

    def __init__(self, total: int, per_caller: int, *, wait_s: float = WAIT_S) -> None:
        """Take the number of places, of all callers together and of one."""
        self._total, self._per_caller, self._wait_s = total, per_caller, wait_s
        self._running: Counter[str] = Counter()
        self._waiting = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, caller: str) -> Iterator[None]:
        """Hold a place for the length of a block; raises BusyError where none becomes free."""
        with self._changed:
            self._wait_for_place(caller)
            self._running[caller] += 1
        try:
            yield
        finally:
            with self._changed:
                self._running[caller] -= 1
                self._running += Counter()  # without those that have none
                self._changed.notify_all()

    def _wait_for_place(self, caller: str) -> None:
        if self._is_free(caller):
            return
        if self._waiting >= WAITING_MAX:
            raise BusyError("too many queries are waiting already. Try again in some seconds.")
        self._waiting += 1
        try:
            deadline = time.monotonic() + self._wait_s
            while not self._is_free(caller):
                if not self._changed.wait(deadline - time.monotonic()):
                    raise BusyError(
                        f"no query could be run within {self._wait_s:g} s: {self._total} run at "
                        f"once, {self._per_caller} of one person. Try again in some seconds."
                    )
        finally:
            self._waiting -= 1

    def _is_free(self, caller: str) -> bool:
        running = self._running.total()
        return running < self._total and self._running[caller] < self._per_caller

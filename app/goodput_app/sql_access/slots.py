"""How many selects run at once, of all and of one person, and how long those of a person run."""

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator

from goodput_queries.errors import QueryError

WAIT_S = 10.0
RETRY_AFTER_S = 5.0
MINUTE_S = 60.0
WAITING_MAX = 24  # a dashboard of Grafana; each waits in one of the server's 40 threads


class BusyError(QueryError):
    """Others are being answered; the same question may be answered later."""

    def __init__(self, sentence: str, retry_after_s: float = RETRY_AFTER_S) -> None:
        """Take the sentence, and after how long it may."""
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


class Slots:
    """Places for selects that run."""

    def __init__(
        self,
        total: int,
        per_caller: int,
        *,
        wait_s: float = WAIT_S,
        seconds_per_minute: float = MINUTE_S,
    ) -> None:
        """Take the number of places, of all callers together and of one.

        seconds_per_minute: how long places may be held by one caller; what runs is not ended
        """
        self._total, self._per_caller, self._wait_s = total, per_caller, wait_s
        self._seconds_per_minute = seconds_per_minute
        self._held: dict[str, deque[tuple[float, float]]] = {}  # until when, and for how long
        self._running: Counter[str] = Counter()
        self._waiting = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, caller: str) -> Iterator[None]:
        """Hold a place for the length of a block; raises BusyError where none becomes free."""
        with self._changed:
            self._wait_for_place(caller)
            self._running[caller] += 1
        began_s = time.monotonic()
        try:
            yield
        finally:
            with self._changed:
                now_s = time.monotonic()
                self._held.setdefault(caller, deque()).append((now_s, now_s - began_s))
                self._running[caller] -= 1
                self._running += Counter()  # without those that have none
                self._changed.notify_all()

    def _refuse_spent(self, caller: str) -> None:
        """Raise BusyError where a caller held places for long enough in the last minute."""
        held, now_s = self._held.get(caller, deque()), time.monotonic()
        while held and now_s - held[0][0] >= MINUTE_S:
            held.popleft()
        if not held:
            self._held.pop(caller, None)
        spent_s, last_s = sum(seconds for _, seconds in held), now_s
        if not held or spent_s < self._seconds_per_minute:
            return
        for until_s, seconds in held:  # once these have left the minute
            if spent_s >= self._seconds_per_minute:
                spent_s, last_s = spent_s - seconds, until_s
        raise BusyError(
            f"your queries ran for {self._seconds_per_minute:g} s within a minute, as long as "
            "[query] seconds_per_minute allows. Try again later.",
            MINUTE_S - (now_s - last_s) + 1,
        )

    def _wait_for_place(self, caller: str) -> None:
        self._refuse_spent(caller)
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

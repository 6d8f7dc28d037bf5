"""What each person, or token, takes of the server: one account for pages, SQL, API and uploads.

It has the processor time of evaluations and the rows of answers in the last minute, and the memory
held now. Who has taken what `[access.per_person]` allows is refused; what runs is not ended. Where
nobody signs in all who ask would be one person: nothing is counted.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator

from goodput_app.access import current
from goodput_app.access.identity import LOCAL
from goodput_app.access.settings import PersonLimits
from goodput_app.settings import settings
from goodput_queries.errors import QueryError

MINUTE_S = 60
RETRY_AFTER_S = 5.0
PEOPLE_MAX = 1_000  # of more, idle accounts are dropped


_thread = threading.local()


class BusyError(QueryError):
    """It is not this person's turn; the same question may be answered later."""

    def __init__(self, sentence: str, retry_after_s: float = RETRY_AFTER_S) -> None:
        """Take the sentence, and after how long it may."""
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


class Account:
    """What one person takes; safe to use from several threads."""

    def __init__(self, limits: PersonLimits | None) -> None:
        """Take what they may; None: nothing is counted."""
        self._limits = limits
        self._seconds: deque[tuple[int, list[float]]] = deque()  # when, and what of each kind
        self._held_bytes = 0
        self._lock = threading.Lock()

    def debit(self, processor_s: float = 0.0, rows: int = 0) -> None:
        """Count what was taken; all of one second together, so that many requests cost little."""
        with self._lock:
            if self._limits is None:
                return
            now = self._now()
            if not self._seconds or self._seconds[-1][0] != now:
                self._seconds.append((now, [0.0, 0.0]))
            taken = self._seconds[-1][1]
            taken[0] += processor_s
            taken[1] += rows

    def refuse_spent(self) -> None:
        """Raise BusyError where the last minute has as much as is allowed."""
        if (may := self._limits) is None:
            return
        with self._lock:
            now, seconds = self._now(), [*self._seconds]
        kinds = (
            (may.seconds_per_minute, "s of processor time", "seconds_per_minute"),
            (may.rows_per_minute, "rows", "rows_per_minute"),
        )
        for kind, (most, unit, key) in enumerate(kinds):
            left = sum(taken[kind] for _, taken in seconds)
            if left < most:
                continue
            freed = (when for when, taken in seconds if (left := left - taken[kind]) < most)
            raise BusyError(
                f"pages and queries of yours took {most:,} {unit} within a minute, which is what "
                f"[access.per_person] {key} allows. Try again later.",
                MINUTE_S - (now - next(freed, now)) + 1,
            )

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Count the processor time of a block in this thread.

        Neither waits nor what others do meanwhile count; of a query in DuckDB this thread does
        about as much as each of its others.
        """
        began_s, before_s = time.thread_time(), getattr(_thread, "counted_s", 0.0)
        _thread.counted_s = before_s
        try:
            yield
        finally:
            took_s, within_s = time.thread_time() - began_s, _thread.counted_s - before_s
            _thread.counted_s = before_s + took_s
            self.debit(took_s - within_s)  # blocks within this one have counted theirs

    @contextlib.contextmanager
    def holding(self, mib: float) -> Iterator[None]:
        """Count memory for the length of a block; raises BusyError where it is too much."""
        size = round(mib * (1 << 20))
        with self._lock:
            if self._limits is not None and self._held_bytes + size > self._limits.memory_mib << 20:
                raise BusyError(
                    "queries and uploads of yours need more memory at once than the "
                    f"{self._limits.memory_mib:,} MiB that [access.per_person] memory_mib allows. "
                    "Try again in some seconds."
                )
            self._held_bytes += size
        try:
            yield
        finally:
            with self._lock:
                self._held_bytes -= size

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held, and nothing was taken in the last minute."""
        with self._lock:
            self._now()
            return not self._seconds and not self._held_bytes

    def _now(self) -> int:
        """Return the second, once what is older than a minute is forgotten."""
        now = int(time.monotonic())
        while self._seconds and now - self._seconds[0][0] > MINUTE_S:
            self._seconds.popleft()
        return now


_accounts: dict[str, Account] = {}
_lock = threading.Lock()
_UNCOUNTED = Account(None)


def account() -> Account:
    """Return the account of who asks now."""
    if (identity := current.current_identity()) is LOCAL:
        return _UNCOUNTED
    with _lock:
        if identity.name not in _accounts:
            if len(_accounts) >= PEOPLE_MAX:
                for name in [name for name, one in _accounts.items() if one.is_idle]:
                    del _accounts[name]
            _accounts[identity.name] = Account(settings().access.per_person)
        return _accounts[identity.name]

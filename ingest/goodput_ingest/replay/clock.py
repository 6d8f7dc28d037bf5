"""The clock of a replay: it runs at a speed, stands still, and is set."""

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from goodput_queries.errors import IngestError

SPEED_MIN, SPEED_MAX = 0.25, 100.0


class ReplayClock:
    """A moment of a recording, between its first and its last; safe to use from several threads."""

    def __init__(
        self,
        begins_at: datetime,
        ends_at: datetime,
        speed: float = 1.0,
        *,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let the clock run from `begins_at`; raises IngestError for a speed out of bounds."""
        self.begins_at = begins_at
        self.ends_at = ends_at
        self._steady_s = steady_s
        self._lock = threading.RLock()
        self._at, self._since_s = begins_at, steady_s()
        self._speed, self._is_paused = _allowed(speed), False

    @property
    def speed(self) -> float:
        """Return how many seconds of the recording pass in a second."""
        return self._speed

    @property
    def is_paused(self) -> bool:
        """Say whether it stands still because somebody paused it."""
        return self._is_paused

    @property
    def is_at_end(self) -> bool:
        """Say whether everything recorded has happened."""
        return self.now() >= self.ends_at

    def now(self) -> datetime:
        """Return the moment of the recording, naive UTC."""
        with self._lock:
            if self._is_paused:
                return self._at
            passed_s = (self._steady_s() - self._since_s) * self._speed
            return min(self.ends_at, self._at + timedelta(seconds=passed_s))

    def set_speed(self, speed: float) -> None:
        """Run at another speed from now on; raises IngestError for one that is not allowed."""
        allowed = _allowed(speed)
        with self._lock:
            self._stand()
            self._speed = allowed

    def pause(self) -> None:
        """Stand still."""
        with self._lock:
            self._stand()
            self._is_paused = True

    def play(self) -> None:
        """Run again."""
        with self._lock:
            self._stand()
            self._is_paused = False

    def set(self, at: datetime) -> datetime:
        """Go to a moment; return it as it lies within the recording."""
        with self._lock:
            self._at = min(max(at, self.begins_at), self.ends_at)
            self._since_s = self._steady_s()
            return self._at

    def _stand(self) -> None:
        self._at, self._since_s = self.now(), self._steady_s()


def _allowed(speed: float) -> float:
    if not SPEED_MIN <= speed <= SPEED_MAX:
        raise IngestError(
            f"a speed of {speed:g} is not possible: expected {SPEED_MIN:g} to {SPEED_MAX:g}."
        )
    return speed

"""Lines that wait to be loaded: bounded, the oldest dropped first and counted."""

import threading
from collections import deque
from dataclasses import dataclass

META = b'{"kind":"meta"'


@dataclass(frozen=True)
class Taken:
    """Lines in order, the number up to which they go, and how many were dropped before them."""

    lines: list[bytes]
    up_to: int
    dropped: int


class Buffer:
    """Safe to fill from several threads while one takes."""

    def __init__(self, max_bytes: int) -> None:
        """Hold at most `max_bytes` of lines."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._lines: deque[bytes] = deque()
        self._first = 0  # number of the first line held
        self._size = 0
        self._dropped = 0
        self._meta = b""  # the last dropped line that says what indices mean

    def add(self, line: bytes) -> None:
        """Keep a line; drop the oldest where there is no room."""
        with self._lock:
            self._lines.append(line)
            self._size += len(line)
            while self._size > self._max_bytes and len(self._lines) > 1:
                oldest = self._pop()
                self._dropped += 1
                if oldest.startswith(META):
                    self._meta = oldest

    def take(self, lines_max: int) -> Taken:
        """Return the oldest lines; they stay until `forget`."""
        with self._lock:
            count = min(lines_max, len(self._lines))
            lines = [self._lines[place] for place in range(count)]
            before = [self._meta] if self._meta else []
            return Taken(before + lines, self._first + count, self._dropped)

    def forget(self, taken: Taken) -> None:
        """Let go of lines that were loaded."""
        with self._lock:
            while self._lines and self._first < taken.up_to:
                self._pop()
            self._dropped -= taken.dropped
            if taken.lines[:1] == [self._meta]:
                self._meta = b""

    def _pop(self) -> bytes:
        line = self._lines.popleft()
        self._first += 1
        self._size -= len(line)
        return line

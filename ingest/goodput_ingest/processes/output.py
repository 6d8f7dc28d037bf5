"""A job's output on its way through: passed on as it comes, and kept with a time for each line."""

import contextlib
import errno
import os
import re
import select
import termios
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

CHUNK_BYTES = 65_536
LINE_MAX_BYTES = 65_536
REDRAWN_S = 1.0  # states of a progress bar that are kept: one a second, and the last one
LINE_END = re.compile(rb"\r\n|\n|\r(?!$)")  # a \r at the end may be the first half of \r\n
OUTPUT_FLAGS = 1  # in what tcgetattr returns


class TimedLines:
    """Cuts output into lines with the time at which each was complete."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._rest = b""
        self._redrawn_s = 0.0

    def lines(self, data: bytes, now_s: float) -> bytes:
        """Return the lines that `data` completes; of redrawn ones one a second."""
        stamp = f"{datetime.fromtimestamp(now_s, UTC):%Y-%m-%dT%H:%M:%S.%f}Z ".encode()
        self._rest += data
        found: list[bytes] = []
        begin = 0
        for end in LINE_END.finditer(self._rest):
            line = self._rest[begin : end.start()]
            begin = end.end()
            if end[0] != b"\r":
                found.append(line)
            elif line.strip() and now_s - self._redrawn_s >= REDRAWN_S:
                self._redrawn_s = now_s
                found.append(line)
        self._rest = self._rest[begin:]
        if len(self._rest) > LINE_MAX_BYTES:
            found.append(self._rest)
            self._rest = b""
        return b"".join(stamp + line + b"\n" for line in found)

    def rest(self, now_s: float) -> bytes:
        """Return the last line, which has no end."""
        return self.lines(b"\n", now_s) if self._rest.strip() else b""


@dataclass
class Channel:
    """One or both of stdout and stderr, where they are the same file.

    reads: our end of what the job writes to. passes_to: where that goes; None: nowhere any more.
    """

    reads: int
    writes: int
    passes_to: int | None
    lines: TimedLines

    def take(self, keep: Callable[[bytes], None], now: Callable[[], float]) -> bool:
        """Pass on and keep what the job wrote; say whether more may come."""
        try:
            data = os.read(self.reads, CHUNK_BYTES)
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal whose other end is closed
                raise
            data = b""
        lines = self.lines.lines(data, now()) if data else self.lines.rest(now())
        if lines:
            keep(lines)  # first: what was shown is in the record, also of a recorder that is killed
        if data and self._pass(data):
            return True
        os.close(self.reads)  # a reader that went away is one of the job as well
        return False

    def _pass(self, data: bytes) -> bool:
        """Pass data on; False where the reader has gone, as of `| head`."""
        while data and self.passes_to is not None:
            try:
                data = data[os.write(self.passes_to, data) :]
            except BlockingIOError:
                select.select([], [self.passes_to], [])
            except BrokenPipeError:
                return False
            except OSError:  # the terminal was closed: the job goes on, and its record
                self.passes_to = None
        return True


def channels() -> tuple[list[Channel], dict[int, int]]:
    """Return channels for stdout and stderr, and which end of one each of them becomes in the job.

    A terminal is replaced by a terminal: programs draw progress bars and do not buffer. Where both
    are the same file they share a channel, which keeps their order.
    """
    found: dict[tuple[int, int], Channel] = {}
    ends: dict[int, int] = {}
    for number in (1, 2):
        try:
            file = os.fstat(number)
        except OSError:
            continue  # closed, and so it is in the job
        key = file.st_dev, file.st_ino
        if key not in found:
            reads, writes = _terminal(number) if os.isatty(number) else os.pipe()
            found[key] = Channel(reads, writes, number, TimedLines())
        ends[number] = found[key].writes
    return list(found.values()), ends


def _terminal(like: int) -> tuple[int, int]:
    reads, writes = os.openpty()
    with contextlib.suppress(termios.error, OSError):
        modes = termios.tcgetattr(like)
        modes[OUTPUT_FLAGS] &= ~termios.OPOST  # the real terminal does that
        termios.tcsetattr(writes, termios.TCSANOW, modes)
    copy_size(like, reads)
    return reads, writes


def copy_size(like: int, terminal: int) -> None:
    """Give a terminal the size of another; what is no terminal has none."""
    with contextlib.suppress(termios.error, OSError):
        termios.tcsetwinsize(terminal, termios.tcgetwinsize(like))

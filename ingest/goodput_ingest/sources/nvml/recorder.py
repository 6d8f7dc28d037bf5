"""Writing what is read of the GPUs to a file of JSON lines, which `goodput ingest nvml` reads."""

import gzip
import json
import threading
import time
from pathlib import Path
from typing import IO, cast

from goodput_ingest.sources.nvml.gpu import Line

GZIP_SUFFIX = ".gz"
FLUSH_S = 10.0


def as_json(line: Line) -> bytes:
    """Return a line of a recording, without its end."""
    return json.dumps(line, separators=(",", ":")).encode()


class Recorder:
    """A file that lines are added to, from several threads.

    A plain file is continued; a compressed one is always new, since a cut one cannot be continued.
    failed: set when the file cannot be written any more; `problem` says why.
    """

    def __init__(self, path: Path) -> None:
        """Open the file; raises OSError."""
        self.failed = threading.Event()
        self.problem = ""
        self.lines = 0
        self._lock = threading.Lock()
        self._flushed_s = time.monotonic()
        self._file = _open(path)

    def add(self, line: Line) -> None:
        """Write a line; after a failure nothing more is written."""
        text = as_json(line) + b"\n"
        with self._lock:
            if self.failed.is_set():
                return
            try:
                self._file.write(text)
                self.lines += 1
                now_s = time.monotonic()
                if now_s - self._flushed_s >= FLUSH_S:
                    self._flushed_s = now_s
                    self._file.flush()
            except OSError as error:
                self.problem = error.strerror or str(error)
                self.failed.set()

    def wait(self, stop: threading.Event, seconds: float | None) -> None:
        """Wait for a stop request, the end of the time, or a failed write."""
        until_s = None if seconds is None else time.monotonic() + seconds
        while not stop.is_set() and not self.failed.is_set():
            left_s = 1.0 if until_s is None else min(1.0, until_s - time.monotonic())
            if left_s <= 0:
                return
            stop.wait(left_s)

    def close(self) -> None:
        """Write the last line and close the file; `problem` says what failed."""
        self.add({"kind": "end", "t": time.time(), "lines": self.lines})
        with self._lock:
            try:
                self._file.close()
            except OSError as error:  # what was still to be written does not fit either
                self.problem = error.strerror or str(error)


def _open(path: Path) -> IO[bytes]:
    if path.name.endswith(GZIP_SUFFIX):
        return cast("IO[bytes]", gzip.open(path, "xb"))
    file = path.open("a+b")
    if file.tell():
        file.seek(-1, 2)
        if file.read(1) != b"\n":  # a recorder before us was killed inside a line
            file.write(b"\n")
    return file

"""Requests that wait to be loaded, a file each: a sender that got its answer need not send again.

A request is written by its handler and loaded by the collector, so that no request waits for the
database and nothing is lost when the process ends in between.
"""

import contextlib
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

import msgspec

from goodput_ingest.received.arrived import Arrived
from goodput_queries.errors import IngestError, stated

SUFFIX: Final = ".request"
PART: Final = ".part"
BLOCK_BYTES: Final = 4_096  # what the smallest file takes
_DECODER: Final = msgspec.msgpack.Decoder(Arrived)


class FullError(IngestError):
    """So much waits already that a request is to be sent again later."""


class Spool:
    """A folder of requests. since_ms: since when this process can take some."""

    max_bytes = 256 << 20  # what waits at most

    def __init__(self, folder: Path, clock_s: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.since_ms = int(clock_s() * 1000)
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._bytes: int | None = None

    def add(self, arrived: Arrived) -> None:
        """Write a request; raises FullError where too much waits, IngestError where it fails."""
        data = zlib.compress(msgspec.msgpack.encode(arrived), level=1)
        self._reserve(_room(len(data)))
        try:
            # readable by its user alone, and gone at the end of the block unless it is whole
            with NamedTemporaryFile(dir=self.folder, suffix=PART) as file:
                file.write(data)
                file.flush()
                name = f"{int(self._clock_s() * 1000):013d}-{Path(file.name).stem}{SUFFIX}"
                (self.folder / name).hardlink_to(file.name)
        except OSError as error:
            self._reserve(-_room(len(data)))
            raise IngestError(
                f"{self.folder}: no request can be kept ({error.strerror})."
            ) from error

    def waiting(self) -> list[tuple[Path, int]]:
        """Return the requests with the time of their arrival, epoch ms, oldest first."""
        with stated(IngestError, f"{self.folder}: it cannot be read"):
            paths = sorted(self.folder.glob(f"*{SUFFIX}"))
        return [(path, int(path.name.partition("-")[0])) for path in paths]

    def read(self, path: Path) -> Arrived:
        """Return a request; one whose file is damaged is a reject."""
        try:
            return _DECODER.decode(zlib.decompress(path.read_bytes()))
        except OSError as error:
            raise IngestError(f"{path}: it cannot be read ({error.strerror}).") from error
        except (zlib.error, msgspec.DecodeError):
            return Arrived(rejects=[("the file of a request is damaged", path.name)], seen=1)

    def remove(self, paths: Iterable[Path]) -> None:
        """Remove requests that were loaded."""
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                size = path.stat().st_size
                self._reserve(0)  # what waits is counted while the file is there
                path.unlink()
                self._reserve(-_room(size))

    def _reserve(self, size: int) -> None:
        """Count what waits, at first what an earlier process left; raises FullError."""
        with self._lock:
            if self._bytes is None:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                for part in self.folder.glob(f"*{PART}"):  # of a process that was killed
                    part.unlink()
                found = self.folder.glob(f"*{SUFFIX}")
                self._bytes = sum(_room(path.stat().st_size) for path in found)
            if size > 0 and self._bytes + size > self.max_bytes:
                raise FullError(f"{self.max_bytes >> 20} MiB wait to be loaded; send it again.")
            self._bytes += size


def _room(size: int) -> int:
    return max(size, BLOCK_BYTES)

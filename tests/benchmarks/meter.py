"""Time and memory of one work: in a process of its own, so that the peak is of nothing else."""

import contextlib
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

STATUS = Path("/proc/self/status")  # of Linux; elsewhere the peak is not known
_is_alone = False  # this process was started for one work


@dataclass(frozen=True)
class Cost:
    """What a work took: seconds of the clock, seconds of all cores, peak memory of its process."""

    wall_s: float
    cpu_s: float
    peak_bytes: int | None = None

    def __add__(self, other):
        """Return the cost of both, one after the other."""
        peaks = [p for p in (self.peak_bytes, other.peak_bytes) if p is not None]
        return Cost(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s, max(peaks, default=None))


def median(costs):
    """Return the median seconds of several works of one kind."""
    return Cost(
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.cpu_s for cost in costs),
    )


class Meter:
    """Measure a `with` block; `cost` is there afterwards."""

    cost: Cost

    def __enter__(self):
        """Start the clocks."""
        self._started = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, kind, error, at):
        """Stop them."""
        wall, cpu = self._started
        self.cost = Cost(time.perf_counter() - wall, time.process_time() - cpu, peak_bytes())


def peak_bytes():
    """Return the most memory of this process at once, imports included; None: not of one work."""
    if not _is_alone or not STATUS.exists():
        return None
    peaks = [line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0].split()[1]) * 1024


def alone(work, *arguments):
    """Call a function of a module in a fresh process; return or raise what it does.

    Raises MemoryError where the process was killed, which is what happens when memory runs out.
    """
    with _no_main_module(), ProcessPoolExecutor(1, get_context("spawn"), _begin_alone) as process:
        try:
            return process.submit(work, *arguments).result()
        except BrokenProcessPool as error:
            raise MemoryError(f"{work.__name__}: its process was killed") from error


@contextlib.contextmanager
def _no_main_module():
    """Hide the main module: a spawned process would import it, and all that it imports, first."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin_alone():
    global _is_alone  # noqa: PLW0603 -- true of a whole process
    _is_alone = True
    # DuckDB takes a process whose main module is no file for a notebook, and draws progress bars
    sys.modules["__main__"].__file__ = __file__


def together(work, *arguments):
    """Call it here, which is quick to start, and does not measure its memory."""
    return work(*arguments)

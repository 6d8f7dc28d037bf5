# ruff: noqa: D102, DTZ001 -- tests name what they do; moments are stored naive, in UTC
"""What tests of reading NVML share: lines that can be waited for, clocks that tests move."""

import contextlib
import threading
from datetime import datetime

from tests.ingest.fake_nvml import FakeNvml

from goodput_ingest.sources.nvml.gpu import Gpu
from goodput_ingest.sources.nvml.library import Nvml
from goodput_ingest.sources.nvml.sampler import Sampler
from goodput_ingest.sources.nvml.watch import Clock, Rhythm, Watch

NOW = datetime(2026, 11, 20, 12)
WALL_S = 1795177770.0
PATIENCE_S = 20.0  # far more than any wait here takes
QUICK = Rhythm(0.1, 0.1)


class Lines:
    """A sink that can be waited on until a line of some shape came."""

    def __init__(self):
        self.all = []
        self._came = threading.Condition()

    def add(self, line):
        with self._came:
            self.all.append(line)
            self._came.notify_all()

    def until(self, is_wanted, count=1):
        def found():
            return [line for line in self.all if is_wanted(line)]

        with self._came:
            assert self._came.wait_for(lambda: len(found()) >= count, PATIENCE_S), self.all[-5:]
            return found()

    def of(self, kind):
        return [line for line in self.all if line["kind"] == kind]


def kind(name, gpu=None):
    return lambda line: line["kind"] == name and gpu in (None, line.get("gpu"))


@contextlib.contextmanager
def sampling(module, lines, **options):
    sampler = Sampler(Nvml(module), lines.add, "node7", QUICK, **{"retry_s": 0.1, **options})
    sampler.start()
    try:
        yield sampler
    finally:
        sampler.stop()


class Times:
    """Two clocks that tests move."""

    def __init__(self):
        self.wall_s, self.steady_s = WALL_S, 100.0
        self.clock = Clock(lambda: self.wall_s, lambda: self.steady_s)

    def pass_s(self, seconds):
        self.wall_s += seconds
        self.steady_s += seconds


def watching(gpu):
    """Return what reads a GPU, the lines that it gives, and the clocks by which it does."""
    lines, times = Lines(), Times()
    stop, attention = threading.Event(), threading.Event()
    opened, rhythm = Gpu(Nvml(FakeNvml(gpu)), 0), Rhythm(1.0, 10.0)
    return Watch(opened, lines.add, stop, attention, rhythm=rhythm, clock=times.clock), lines, times


def steps(watch, times, count):
    for _ in range(count):
        watch.step()
        times.pass_s(1.0)

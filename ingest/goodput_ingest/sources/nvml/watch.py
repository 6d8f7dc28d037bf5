"""Samples one GPU at its interval, in a thread of its own: a hanging call blocks no other GPU."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from goodput_ingest.sources.nvml.gpu import Gpu, Line
from goodput_ingest.sources.nvml.library import (
    RESET_REQUIRED,
    DriverGoneError,
    GpuGoneError,
    NvmlError,
)

Sink = Callable[[Line], None]

SILENT_MAX = 30  # readings in a row without a single value: the GPU does not answer any more
ADDRESS = ("kind", "t", "gpu", "gi")  # fields that every line has


@dataclass(frozen=True)
class Clock:
    """The wall clock, which may be set, and a steady one for intervals; both in seconds."""

    wall_s: Callable[[], float] = time.time
    steady_s: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class Rhythm:
    """Sampling intervals of GPUs, and of counters, processes and the machine."""

    fast_s: float = 1.0
    slow_s: float = 10.0


class Watch:
    """A GPU that is sampled until it is gone, its MIG layout changes, or it is stopped."""

    def __init__(
        self,
        gpu: Gpu,
        sink: Sink,
        stop: threading.Event,
        attention: threading.Event,
        *,
        rhythm: Rhythm,
        clock: Clock,
    ) -> None:
        """Take the GPU, where its lines go, what stops it, and what is set when it has ended."""
        self.gpu = gpu
        self.ended: NvmlError | None = None  # why the GPU is no longer read
        self.has_new_layout = False
        self.asked_at_s: float | None = None  # steady; set while a reading is under way
        self._sink = sink
        self._stop = stop
        self._attention = attention
        self._rhythm = rhythm
        self._clock = clock
        self._slow_at_s = -1.0
        self._silent = 0

    @property
    def has_ended(self) -> bool:
        """Whether the GPU cannot be read further as it was opened."""
        return self.ended is not None or self.has_new_layout

    def run(self, offset_s: float = 0.0) -> None:
        """Sample at the interval until stopped; missed readings are not repeated."""
        begun_s = self._clock.steady_s() + offset_s
        due_s = begun_s
        while not self._stop.wait(max(0.0, due_s - self._clock.steady_s())):
            try:
                self.step()
            except Exception as error:  # a thread has no caller: every error must be reported
                self.ended = NvmlError(f"reading failed: {error!r}")
            if self.has_ended:
                self._attention.set()
                return
            passed = (self._clock.steady_s() - begun_s) // self._rhythm.fast_s
            due_s = begun_s + (passed + 1) * self._rhythm.fast_s

    def step(self) -> None:
        """Take one reading; after it `has_ended` may be true."""
        wall_s, steady_s = self._clock.wall_s(), self._clock.steady_s()
        self.asked_at_s = steady_s
        try:
            self._read(wall_s, steady_s)
        except GpuGoneError as error:
            self._end(wall_s, error, "reset" if error.code == RESET_REQUIRED else "lost")
        except DriverGoneError as error:
            self.ended = error
        finally:
            self.asked_at_s = None

    def _read(self, wall_s: float, steady_s: float) -> None:
        lines = self.gpu.fast(wall_s, steady_s)
        if not any(_is_reading(line) for line in lines):
            self._silent += 1
            if self._silent >= SILENT_MAX:
                self._end(wall_s, NvmlError("the GPU answers no call any more"), "silent")
            return
        self._silent = 0
        lines[0]["took_ms"] = round((self._clock.steady_s() - steady_s) * 1e3, 2)
        lines += self.gpu.events(wall_s)
        if steady_s >= self._slow_at_s:
            self._slow_at_s = steady_s + self._rhythm.slow_s - self._rhythm.fast_s / 2
            lines.append(self.gpu.slow(wall_s))
            self.has_new_layout = self.gpu.has_new_layout()
        self._send(lines)

    def _end(self, wall_s: float, error: NvmlError, event: str) -> None:
        self.ended = error
        line = {"kind": "event", "t": wall_s, "gpu": self.gpu.index, "event": event}
        self._send([line | {"reason": error.reason}])

    def _send(self, lines: list[Line]) -> None:
        """Hand lines on, unless indices mean other GPUs by now: a call may hang for long."""
        if not self._stop.is_set():
            for line in lines:
                self._sink(line)


def _is_reading(line: Line) -> bool:
    """Say whether a line holds any value; an empty GPM is none."""
    return any(value != {} for name, value in line.items() if name not in ADDRESS)

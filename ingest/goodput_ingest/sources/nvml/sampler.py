"""Samples all GPUs of this machine; survives lost GPUs, MIG changes and driver reloads."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

from goodput_ingest.sources.nvml import machine
from goodput_ingest.sources.nvml.gpu import Gpu, Line
from goodput_ingest.sources.nvml.library import DriverGoneError, Nvml, NvmlError, text
from goodput_ingest.sources.nvml.processes import Processes
from goodput_ingest.sources.nvml.watch import Clock, Rhythm, Sink, Watch

HANGS_AFTER_S = 30.0  # a call into the driver has no timeout of its own
JOIN_S = 5.0


@dataclass
class Sampler:
    """Reads the machine's GPUs in threads and hands each line to `sink`, from several threads.

    node: what the recording calls this machine.
    retry_s: between attempts to open a driver or a GPU that is gone.
    """

    nvml: Nvml
    sink: Sink
    node: str
    rhythm: Rhythm = field(default_factory=Rhythm)
    clock: Clock = field(default_factory=Clock)
    proc: Path = machine.PROC
    retry_s: float = 30.0

    def __post_init__(self) -> None:
        """Begin with nothing open."""
        self._processes = Processes(self.sink, self.proc, self.rhythm.fast_s)
        self.settled = threading.Event()  # the driver was opened, or could not be
        self._stop = threading.Event()
        self._stop_watches = threading.Event()
        self._attention = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nvml", daemon=True)
        self._watches: dict[int, Watch] = {}
        self._threads: dict[int, threading.Thread] = {}
        self._about: dict[int, Line] = {}  # what is known of each GPU, gone ones included
        self._gone: dict[int, str] = {}  # GPUs that are not read, and why
        self._driver_problem = ""
        self._is_open = False

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading and close; threads that hang in the driver are left behind."""
        self._stop.set()
        self._attention.set()
        if self._thread.is_alive():
            self._thread.join(2 * JOIN_S)

    def problems(self) -> list[str]:
        """Return what cannot be read now, a sentence each."""
        if self._driver_problem:
            return [self._driver_problem]
        now_s = self.clock.steady_s()
        hanging = [
            f"GPU {index}: NVML has not answered for {now_s - asked_s:.0f} s"
            for index, watch in list(self._watches.items())
            if (asked_s := watch.asked_at_s) is not None and now_s - asked_s > HANGS_AFTER_S
        ]
        return hanging + [f"GPU {index}: {why}" for index, why in list(self._gone.items())]

    def is_reading(self) -> bool:
        """Say whether at least one GPU is being read."""
        return len(self._watches) + len(self._gone) > len(self.problems())

    def without(self) -> dict[int, dict[str, str]]:
        """Return for each GPU by index which readings it does not give, and why."""
        return {index: watch.gpu.without() for index, watch in list(self._watches.items())}

    def _run(self) -> None:
        """Open the driver and sample in a loop until stopped."""
        while not self._stop.is_set():
            try:
                self._open()
                self.settled.set()
                self._look_after()
            except NvmlError as error:
                self._driver_problem = f"NVML cannot be used: {error.reason}"
            except Exception as error:  # a thread has no caller: every error must be reported
                self._driver_problem = f"reading NVML failed: {error!r}"
            self.settled.set()
            self._close()
            if self._driver_problem:
                self._stop.wait(self.retry_s)

    def _open(self) -> None:
        """Open the driver and every GPU that lets itself be opened, and begin to read them."""
        self.nvml.open()
        self._is_open = True
        self._stop_watches = threading.Event()
        self._about, self._gone = {}, {}
        count = int(self.nvml.ask("nvmlDeviceGetCount"))
        if not count:
            raise NvmlError("it knows of no GPU on this machine")
        for index in range(count):
            self._open_gpu(index)
        self._driver_problem = ""
        self.sink(self._meta())
        for place, index in enumerate(self._watches):
            self._begin(index, place / count * self.rhythm.fast_s)

    def _open_gpu(self, index: int) -> None:
        """Open a GPU; one that cannot be opened is tried again later."""
        sees_all = machine.sees_all_processes(self.proc)
        try:
            gpu = Gpu(self.nvml, index, sees_all_processes=sees_all)
        except DriverGoneError:
            raise
        except NvmlError as error:
            self._gone[index] = error.reason
            return
        self._watches[index] = Watch(
            gpu,
            # in another PID namespace the driver's pids may be other processes than ours
            self._processes.take if sees_all else self.sink,
            self._stop_watches,
            self._attention,
            rhythm=self.rhythm,
            clock=self.clock,
        )
        self._about[index] = gpu.meta()
        self._gone.pop(index, None)

    def _begin(self, index: int, offset_s: float = 0.0) -> None:
        """Read a GPU in a thread; offsets spread the calls of many over the interval."""
        self._threads[index] = threading.Thread(
            target=self._watches[index].run,
            args=(offset_s,),
            name=f"nvml-{index}",
            daemon=True,
        )
        self._threads[index].start()

    def _look_after(self) -> None:
        """Reopen GPUs that were lost or have a new MIG layout, and report the machine's state.

        Returns when stopped, or when NVML must be reopened: the driver is gone, or no GPU has
        answered for `retry_s`.
        """
        retry_at_s = self.clock.steady_s() + self.retry_s
        report_at_s = 0.0
        while not self._stop.is_set():
            now_s = self.clock.steady_s()
            if now_s >= report_at_s:
                report_at_s = now_s + self.rhythm.slow_s
                self._report_machine()
            self._attention.wait(max(0.0, min(report_at_s, retry_at_s) - now_s))
            self._attention.clear()
            ended = [i for i, watch in self._watches.items() if watch.has_ended]
            if any(isinstance(self._watches[i].ended, DriverGoneError) for i in ended):
                return
            for index in ended:
                self._drop(index)
            is_time = self.clock.steady_s() >= retry_at_s
            if is_time:
                retry_at_s = self.clock.steady_s() + self.retry_s
            if is_time and not self._watches:
                return
            again = [i for i in ended if i not in self._gone] + (
                list(self._gone) if is_time else []
            )
            self._reopen(again)

    def _drop(self, index: int) -> None:
        """Remove a watch; its GPU is gone, or has a new MIG layout and is reopened at once."""
        watch = self._watches.pop(index)
        self._threads.pop(index).join(JOIN_S)
        watch.gpu.close()
        if watch.ended is not None:
            self._gone[index] = watch.ended.reason

    def _reopen(self, indices: list[int]) -> None:
        """Reopen GPUs and write a new meta line for those that came back."""
        for index in indices:
            self._open_gpu(index)
        back = [index for index in indices if index in self._watches]
        if back:
            self.sink(self._meta())
        for index in back:
            self._begin(index)

    def _close(self) -> None:
        """Stop the watches and shut NVML down, unless a call still hangs in it."""
        self._stop_watches.set()
        for thread in self._threads.values():
            thread.join(JOIN_S)
        is_hanging = any(thread.is_alive() for thread in self._threads.values())
        if self._is_open and not is_hanging:
            for watch in self._watches.values():
                watch.gpu.close()
            self.nvml.close()
        self._watches, self._threads, self._is_open = {}, {}, False

    def _meta(self) -> Line:
        """Return the line that says which GPUs the indices of later lines mean."""
        return {
            "kind": "meta",
            "t": self.clock.wall_s(),
            "mono": self.clock.steady_s(),
            "host": self.node,
            "boot_id": machine.boot_id(self.proc),
            "interval": self.rhythm.fast_s,
            "slow_interval": self.rhythm.slow_s,
            "driver": text(self.nvml.ask("nvmlSystemGetDriverVersion")),
            "nvml": text(self.nvml.ask("nvmlSystemGetNVMLVersion")),
            "gpus": [about for _, about in sorted(self._about.items())],
        }

    def _report_machine(self) -> None:
        wall_s = self.clock.wall_s()
        self.sink({"kind": "clock", "t": wall_s, "mono": self.clock.steady_s()})
        self.sink({"kind": "host", "t": wall_s, **machine.figures(self.proc)})

"""What the processes on the GPUs are, and when they end: a line when one is seen, one when gone.

Lists of processes come every ten seconds; whether those on them still live is asked at each
reading, so that the end of a process is known to the second.
"""

import threading
from pathlib import Path

from goodput_ingest.processes import proc as proc_files
from goodput_ingest.processes.proc import Process
from goodput_ingest.sources.nvml.gpu import Line
from goodput_ingest.sources.nvml.readings import PROCESSES
from goodput_ingest.sources.nvml.watch import Sink


class Processes:
    """The processes that were on a list and live. Threads of several GPUs send their lines."""

    def __init__(self, sink: Sink, proc: Path, interval_s: float) -> None:
        """Take where lines go, and how long after a look the next one is due."""
        self._sink = sink
        self._proc = proc
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._living: dict[int, tuple[Process, float]] = {}  # with when it was seen last
        self._looked_at_s = 0.0

    def take(self, line: Line) -> None:
        """Send on a line of a GPU, after what it says of processes that were not known."""
        if line["kind"] in ("fast", "slow"):
            with self._lock:
                self._look(line["t"])
                for pid, *_ in line.get(PROCESSES) or ():
                    self._add(pid, line["t"])
        self._sink(line)

    def _add(self, pid: int, now_s: float) -> None:
        if pid in self._living or (found := proc_files.process(pid, self._proc)) is None:
            return
        self._living[pid] = (found, now_s)
        self._sink(_line(found, now_s))

    def _look(self, now_s: float) -> None:
        """Report the processes that are gone since the last look."""
        if abs(now_s - self._looked_at_s) < self._interval_s:
            return
        self._looked_at_s = now_s
        for pid, (one, seen_s) in list(self._living.items()):
            if proc_files.start_ticks(pid, self._proc) == one.ticks:
                self._living[pid] = (one, now_s)
            else:
                del self._living[pid]
                self._sink(_line(one, seen_s) | {"gone": now_s})


def _line(one: Process, seen_s: float) -> Line:
    line = {
        "kind": "process",
        "t": seen_s,
        "pid": one.pid,
        "start": one.start_s,
        "name": one.name,
        "command": one.command,
    }
    more = {"user": one.user, "job": one.job, "pod": one.pod, "container": one.container}
    return line | {name: value for name, value in more.items() if value is not None}

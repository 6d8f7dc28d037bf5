"""A replay that a serving dashboard starts: `goodput replay` as a process of its own.

A process has one store and one replay, so a second database needs a second process. It listens
where the dashboard does, on a port of its own, with the same sign-in, and ends with the dashboard:
its standard input is a pipe that closes when this process ends, however it ends.
"""

import atexit
import contextlib
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

COMMAND = (sys.executable, "-c", "from goodput_app.cli.main import main; main()", "replay")
END_WAIT_S = 10.0
ERROR_MAX_CHARS = 500


@dataclass
class ReplayProcess:
    """One replay. folder: of its uploaded files, removed with it; errors: what it writes there."""

    title: str
    port: int
    process: subprocess.Popen[str]
    errors: IO[bytes]
    folder: tempfile.TemporaryDirectory[str] | None = None
    _is_ready: threading.Event = field(default_factory=threading.Event)

    @property
    def is_ready(self) -> bool:
        """Return whether its pages answer."""
        return self._is_ready.is_set() and self.process.poll() is None

    @property
    def failure(self) -> str | None:
        """Return the last line that it wrote before it ended; None while it runs."""
        if self.process.poll() is None:
            return None
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "it ended")
        return last[-ERROR_MAX_CHARS:]

    def follow(self) -> None:
        """Note when its pages answer: it prints its address then. Runs in a thread."""
        assert self.process.stdout is not None  # noqa: S101 -- a pipe, see `start`
        for line in self.process.stdout:
            if line.startswith("http"):
                self._is_ready.set()

    def end(self) -> None:
        """End it, and remove what was uploaded for it."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_WAIT_S)
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            if pipe is not None:
                pipe.close()
        if self.folder is not None:
            self.folder.cleanup()


_lock = threading.Lock()
_current: ReplayProcess | None = None


def current() -> ReplayProcess | None:
    """Return the replay that this process started last."""
    return _current


def start(
    paths: Sequence[Path],
    title: str,
    speed: float,
    address: str,
    *,
    folder: tempfile.TemporaryDirectory[str] | None = None,
    command: Sequence[str] = COMMAND,
) -> ReplayProcess:
    """Replay recorded files; a replay that was started before ends.

    folder: of uploaded files, removed when the replay ends. command: what is run, before options
    and paths.
    """
    global _current  # noqa: PLW0603 -- one replay a process
    with _lock:
        if _current is not None:
            _current.end()
        port = _free_port(address)
        options = ["--speed", f"{speed:g}", "--port", str(port), "--address", address, "--attached"]
        errors = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the replay
        process = subprocess.Popen(  # noqa: S603 -- no shell; paths are of the folder of recordings
            [*command, *options, "--", *map(str, paths)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        _current = ReplayProcess(title, port, process, errors, folder)
        threading.Thread(target=_current.follow, daemon=True, name="replay").start()
        return _current


def _free_port(address: str) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as found:
        return int(found.getsockname()[1])


def end() -> None:
    """End the replay of this process, if there is one."""
    global _current  # noqa: PLW0603 -- as above
    with _lock:
        if _current is not None:
            _current.end()
        _current = None


atexit.register(end)

"""The process in which one select of a person runs: started for it, killed at its deadline."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from goodput_queries.errors import QueryError
from goodput_queries.sandbox.limits import Limits

WORKER = Path(__file__).with_name("worker.py")
LENGTH_BYTES = 8
HEAD_MAX_BYTES = 1 << 24  # of the JSON of a message
# Nothing of the server's: it has secrets. One thread of OpenBLAS, and no gigabyte that Arrow's
# allocator takes ahead: both count as memory of the process, and threads grow with the host's cores
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",  # of Arrow
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


class WorkerProcess:
    """A worker, as a context manager: when the block ends, so does the process."""

    def __init__(self, limits: Limits, took: Callable[[float], object] | None = None) -> None:
        """Start a worker; its time begins now. took: gets its processor time, once it ended."""
        self._limits, self._took = limits, took
        self._deadline = time.monotonic() + limits.timeout_s
        self._is_late = False
        self._process = subprocess.Popen(  # noqa: S603 -- our own program, without a shell
            [sys.executable, "-sP", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # where the server's own packages are, also where a module of the host's set PYTHONPATH
            env={**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            cwd="/",
            start_new_session=True,
        )
        self._timer = threading.Timer(limits.timeout_s, self._end_late)
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()
        if self._process.returncode is None:  # `Popen.kill` would forget what one that ended took
            os.kill(self.pid, signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        with contextlib.suppress(ChildProcessError):  # the deadline found that it had ended
            _, _, used = os.wait4(self._process.pid, 0)
            self._process.returncode = -signal.SIGKILL
            if self._took is not None:
                self._took(used.ru_utime + used.ru_stime)
        self._process.wait()

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        return self._process.pid

    @property
    def left_s(self) -> float:
        """Return the seconds until the deadline; raises QueryError where none is left."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._late()
        return left

    def ask(self, sql: str) -> None:
        """Send the statement and what it may take; the worker then says which tables it names."""
        self.send({"sql": sql, "cpu_s": self._limits.cpu_s, **asdict(self._limits)})

    def send(self, message: dict[str, Any], content: bytes = b"") -> None:
        """Send a message, and bytes with it; raises QueryError where the worker has ended."""
        text = json.dumps({**message, "bytes": len(content)} if message else {}).encode()
        try:
            assert self._process.stdin is not None  # noqa: S101 -- a pipe was asked for
            for part in (len(text).to_bytes(LENGTH_BYTES, "big"), text, content):
                self._process.stdin.write(part)
            self._process.stdin.flush()
        except OSError as error:
            raise self._ended() from error

    def receive(self) -> tuple[dict[str, Any], bytes]:
        """Return the next message; raises QueryError for a refusal and where the worker ended."""
        length = int.from_bytes(self._read(LENGTH_BYTES), "big")
        if length > HEAD_MAX_BYTES:
            raise self._ended()
        message: dict[str, Any] = json.loads(self._read(length))
        if "error" in message:
            raise QueryError(_sentence(message, self._limits))
        size = message["bytes"]
        if size > 2 * self._limits.result_max_mib << 20:
            raise self._ended()
        return message, self._read(size)

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 -- a pipe was asked for
        found = self._process.stdout.read(size)
        if len(found) < size:
            raise self._ended()
        return found

    def _end_late(self) -> None:
        self._is_late = True
        self._process.kill()

    def _late(self) -> QueryError:
        return QueryError(
            f"the query took longer than {self._limits.timeout_s:g} s and was stopped. Narrow the "
            "time range, or read fewer views."
        )

    def _ended(self) -> QueryError:
        """Return why nothing comes any more: the deadline, or a process that the system ended."""
        if self._is_late:
            return self._late()
        return QueryError(
            "the query was stopped: its process ended, most likely because it needed more than "
            f"{self._limits.memory_mib} MiB of memory."
        )


def _sentence(message: dict[str, Any], limits: Limits) -> str:
    """Return what a worker says of a statement, without the advice for whoever runs a database."""
    said = str(message["message"]).strip()
    if message["error"] in ("OutOfMemoryException", "MemoryError", "ArrowMemoryError"):
        return f"the query needs more than {limits.memory_mib} MiB of memory and was stopped."
    return said if message["error"] == "RefusedError" else f"the database refused the query: {said}"

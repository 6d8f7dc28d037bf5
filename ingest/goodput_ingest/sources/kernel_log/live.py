"""This machine's kernel log, live: the journal, or `/dev/kmsg` where there is no journal.

The journal is asked for what came after the entry read last; at the start for what came since the
store's last event, over reboots: what the kernel wrote before a crash is read after it. `/dev/kmsg`
holds this boot alone, and its times count from boot, so they are approximate.
"""

import hashlib
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import IO, ClassVar, cast

from goodput_ingest.formats import files
from goodput_ingest.source import Batch, ReadOptions
from goodput_ingest.sources.kernel_log.kernel_log import SOURCE, KernelRows
from goodput_queries.errors import IngestError

JOURNALCTL = ("journalctl", "--no-pager", "--output=json")
FIELDS = "--output-fields=MESSAGE,_TRANSPORT,SYSLOG_IDENTIFIER"  # time and cursor come anyway
KERNEL = ("_TRANSPORT=kernel", "SYSLOG_FACILITY=0")  # programs may write into the kernel's log
CURSOR = re.compile(rb'"__CURSOR"\s*:\s*"([^"]{1,500})"')
NOT_ALLOWED = b"not seeing messages from other users"  # journalctl's hint; it still exits with 0
OVERLAP = timedelta(minutes=5)
RESTART_SLACK = timedelta(seconds=2)
LINES_A_PART = 5_000
LINE_BYTES = 64 * 1024
RECORDS_A_POLL = 100_000  # more than any kernel buffer holds
KMSG_RECORD_BYTES = 8_192  # the kernel's own limit (CONSOLE_EXT_LOG_MAX)
KMSG = re.compile(rb"(?P<priority>\d{1,9}),\d+,(?P<since_boot_us>\d{1,18})[^;\n]*;(?P<text>.*)")
FACILITY_SHIFT = 3


def _booted_at() -> datetime:
    """Return when this machine was started, naive UTC, as its clock has it now."""
    started_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return datetime.fromtimestamp(started_s, UTC).replace(tzinfo=None)


@dataclass
class _State:
    """The position up to which this process has read."""

    rows: KernelRows | None = None
    lines: int = 0
    cursor: str = ""
    kmsg: int | None = None  # file descriptor


@dataclass(frozen=True)
class KernelLogLive:
    """The kernel log of the machine that this runs on.

    cluster, node: what the events belong to; the machine's own host name where unset.
    lookback_s: how far back the first reading of all goes.
    timeout_s: how long the journal may take to answer; what it gave by then counts.
    """

    name: ClassVar[str] = SOURCE

    cluster: str | None = None
    node: str = field(default_factory=socket.gethostname)
    interval_s: float = 10.0
    lookback_s: float = 7 * 86_400.0
    timeout_s: float = 30.0
    journalctl: tuple[str, ...] = JOURNALCTL
    kmsg: Path = Path("/dev/kmsg")
    booted_at: Callable[[], datetime] = field(default=_booted_at, repr=False, compare=False)
    _state: _State = field(default_factory=_State, init=False, repr=False, compare=False)

    @property
    def origin(self) -> str:
        """Return the usual origin; rows of the kernel's buffer have another."""
        return self._origin("journal")

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:
        """Yield the events since the last poll, or since what the store has; raises IngestError."""
        if self._state.kmsg is None and (self._state.cursor or self._journal_end()):
            since = reached.get(self._origin("journal"), now - timedelta(seconds=self.lookback_s))
            yield from self._journal(since - OVERLAP)
        else:
            yield from self._kernel_buffer(reached.get(self._origin("kmsg")))

    def probe(self) -> list[str]:
        """Say which log is read; raises IngestError where none can be."""
        if self._journal_end():
            return [f"the journal of {self.node} has the kernel's messages"]
        os.close(self._open_kmsg())
        return [
            f"the journal of {self.node} has no kernel messages; {self.kmsg} is read, whose times "
            "are approximate and which forgets at a reboot"
        ]

    def close(self) -> None:
        """Let go of the kernel's buffer."""
        if self._state.kmsg is not None:
            os.close(self._state.kmsg)
            self._state.kmsg = None

    def _origin(self, log: str) -> str:
        return f"{log} of {self.node}"

    def _journal_end(self) -> str:
        """Return the cursor of the journal's last kernel entry, empty where it has none."""
        try:
            done = subprocess.run(  # noqa: S603 -- the command is a setting, the rest is ours
                [*self.journalctl, FIELDS, "--lines=1", *KERNEL],
                capture_output=True,
                timeout=self.timeout_s,
                check=False,
            )
        except FileNotFoundError:
            return ""
        except (OSError, subprocess.TimeoutExpired) as error:
            raise IngestError(f"kernel-log: {self.journalctl[0]} failed ({error}).") from error
        if last := CURSOR.search(done.stdout):
            return last[1].decode()
        if NOT_ALLOWED in done.stderr:
            raise IngestError(
                f"kernel-log: this user may not read the journal of {self.node}. Add it to the "
                "group systemd-journal, or run the collector as root."
            )
        return ""

    def _journal(self, since: datetime) -> Iterator[Batch]:
        """Yield the events of the journal's entries after the cursor, or after a moment."""
        end = self._state.cursor or self._journal_end()
        begin = f"--since=@{since.replace(tzinfo=UTC).timestamp():.6f}"
        where = f"--after-cursor={self._state.cursor}" if self._state.cursor else begin
        with tempfile.TemporaryFile() as complaints:
            process = subprocess.Popen(  # noqa: S603 -- the command is a setting, the rest is ours
                [*self.journalctl, FIELDS, where, *KERNEL],
                stdout=subprocess.PIPE,
                stderr=complaints,
            )
            is_late = threading.Event()

            def stop() -> None:
                is_late.set()
                process.kill()

            timer = threading.Timer(self.timeout_s, stop)
            timer.start()
            try:
                lines = _lines(cast("IO[bytes]", process.stdout))
                while chunk := list(islice(lines, LINES_A_PART)):
                    yield from self._events("journal", chunk)
                    if last := _last_cursor(chunk):
                        end = self._state.cursor = last
                code = process.wait()
            finally:
                timer.cancel()
                process.kill()
                process.wait()
                cast("IO[bytes]", process.stdout).close()
            if is_late.is_set():
                raise IngestError(
                    f"kernel-log: {self.journalctl[0]} did not end within {self.timeout_s:g} s; "
                    "what it gave was read, the next poll goes on from there."
                )
            if code:
                self._state.cursor = ""  # the journal may have forgotten it: begin by time again
                complaints.seek(0)
                said = complaints.read(500).decode("utf-8", "replace").strip()
                raise IngestError(f"kernel-log: {self.journalctl[0]} failed ({said or code}).")
        self._state.cursor = end

    def _kernel_buffer(self, reached: datetime | None) -> Iterator[Batch]:
        """Yield the events in the kernel's own buffer since the last poll.

        Times are counted from boot and come out a little different after a restart of ours, so
        what is not later than the last event of the store is taken as read.
        """
        is_first = self._state.kmsg is None
        if is_first:
            self._state.kmsg = self._open_kmsg()
        booted_at = self.booted_at()
        lines: list[bytes] = []
        for record in _records(cast("int", self._state.kmsg)):
            found = KMSG.match(record)
            if found is None or int(found["priority"]) >> FACILITY_SHIFT:
                continue  # a continuation, or a program that wrote into the kernel's log
            at = booted_at + timedelta(microseconds=int(found["since_boot_us"]))
            if is_first and reached is not None and at <= reached + RESTART_SLACK:
                continue
            lines.append(f"{at.isoformat(timespec='microseconds')}+00:00 ".encode() + found["text"])
        if lines:
            yield from self._events("kmsg", lines)

    def _open_kmsg(self) -> int:
        try:
            return os.open(self.kmsg, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise IngestError(
                f"kernel-log: the journal of {self.node} has no kernel messages and {self.kmsg} "
                f"cannot be read ({error.strerror}). Run the collector as root, or keep a journal."
            ) from error

    def _events(self, log: str, lines: list[bytes]) -> Iterator[Batch]:
        """Yield the batches of some lines that have any event; nothing else is kept of them."""
        state = self._state
        if state.rows is None or state.rows.origin != self._origin(log):
            options = ReadOptions(cluster=self.cluster, node=self.node)
            state.rows = KernelRows(self._origin(log), options)
        digest = hashlib.sha256(b"\n".join(lines)).hexdigest()[: files.DIGEST_CHARS]
        part = files.Part(state.lines + 1, files.with_ends(lines), digest)
        for batch in (state.rows.batch(part), state.rows.oom_kills(part)):
            if batch is not None and (batch.rows.height or batch.rejects):
                yield batch
        state.lines += len(lines)


def _last_cursor(lines: list[bytes]) -> str:
    """Return the cursor of the last whole entry; the very last may have been cut."""
    found = (CURSOR.search(line) for line in reversed(lines))
    return next((cursor[1].decode() for cursor in found if cursor), "")


def _lines(pipe: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a pipe; of one over LINE_BYTES only the beginning."""
    is_inside = False
    while line := pipe.readline(LINE_BYTES):
        is_whole = line.endswith(b"\n")
        if not is_inside:
            yield line.rstrip(b"\n")
        is_inside = not is_whole


def _records(descriptor: int) -> Iterator[bytes]:
    """Yield the lines that a descriptor has without blocking; a read returns whole lines."""
    for _ in range(RECORDS_A_POLL):
        try:
            found = os.read(descriptor, KMSG_RECORD_BYTES)
        except BlockingIOError:
            return
        except BrokenPipeError:  # records were overwritten before we came; the next ones are there
            continue
        if not found:
            return
        yield from found.splitlines()

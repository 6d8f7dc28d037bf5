"""Runs a command as if it ran alone, and records it: start, output, exit, on which GPUs."""

import contextlib
import getpass
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence

from goodput_ingest.processes.command_line import without_secrets
from goodput_ingest.processes.output import Channel, channels, copy_size
from goodput_ingest.processes.record import EVENTS, OUTPUT, Record

FORWARDED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH),
)
BY_KERNEL = 0x80  # SI_KERNEL: the terminal sent it to the job as well
# what Python ignores, and a command does not expect
DEFAULTS = (signal.SIGPIPE, signal.SIGXFSZ)
KINDS: dict[int, str] = {  # of failures by signal
    signal.SIGKILL: "sigkill",
    signal.SIGSEGV: "segfault",
    signal.SIGABRT: "sigabrt",
    signal.SIGBUS: "bus_error",
}
DRAIN_S = 0.5  # after the command's end, for output of processes that it left behind
SIGNALLED = 128  # a shell's exit code of a signal


def run(command: list[str], record: Record, meanwhile: Callable[[], None] = lambda: None) -> int:
    """Run a command to its end and return its exit code, as a shell gives it.

    It has our stdin, process group and environment, with what `goodput_emitter` needs to write
    into the same record. Raises OSError where it cannot be started.
    meanwhile: called in a thread once it has started, waited for a moment at most.
    """
    record.write(EVENTS, b"")  # the folder is there when the command writes into it
    opened, ends = channels()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (*FORWARDED, signal.SIGCHLD))
    started_s = time.time()
    record.pid = os.posix_spawnp(
        command[0],
        command,
        _environment(record),
        file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in ends.items()],
        setsigmask=mask,
        setsigdef=DEFAULTS,
    )
    for channel in opened:
        os.close(channel.writes)
    record.start(started_s, without_secrets(command), _user())
    ending, wakes = os.pipe()
    threading.Thread(target=_forward, args=(record.pid, opened, wakes), daemon=True).start()
    beside = threading.Thread(target=meanwhile, daemon=True)
    beside.start()
    status = _pass_output(record, opened, ending)
    beside.join(DRAIN_S)
    code = os.waitstatus_to_exitcode(status)
    _end(record, code)
    return code if code >= 0 else SIGNALLED - code


def _environment(record: Record) -> dict[str, str]:
    added = {
        # lines would come late, and so their times be wrong, where Python kept them in a buffer
        "PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED") or "1",
        "GOODPUT_RUN_ID": record.run_id,
        "GOODPUT_ATTEMPT": str(record.attempt),
        "JOB_EVENTS": os.environ.get("JOB_EVENTS", str(record.folder.absolute())),
    }
    return {**os.environ, **added}


def _user() -> str | None:
    with contextlib.suppress(KeyError, OSError):  # a container may not know its user
        return getpass.getuser()
    return None


def _forward(pid: int, opened: Sequence[Channel], wakes: int) -> None:
    """Send signals on that were sent to us alone; those of the terminal reach the command.

    wakes: a pipe that is written to when the command has ended or was stopped.
    """
    while True:
        came = signal.sigwaitinfo((*FORWARDED, signal.SIGCHLD))
        if came.si_signo == signal.SIGCHLD:
            os.write(wakes, b"\0")
            continue
        if came.si_signo == signal.SIGWINCH:
            for channel in opened:
                if channel.passes_to is not None:
                    copy_size(channel.passes_to, channel.reads)
        elif came.si_code == BY_KERNEL:
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, came.si_signo)


def _pass_output(record: Record, opened: Sequence[Channel], ending: int) -> int:
    """Pass output on until the command ends; return its status.

    ending: readable when it may have ended
    """
    open_now = {channel.reads: channel for channel in opened}
    status: int | None = None
    until_s = float("inf")
    while status is None or (open_now and time.monotonic() < until_s):
        waited = [*open_now, ending] if status is None else [*open_now]
        ready, _, _ = select.select(waited, [], [], None if status is None else 0.0)
        if status is not None and not ready:
            break
        for file in ready:
            if file == ending:
                os.read(ending, 1)
                ended, found = os.waitpid(record.pid, os.WNOHANG)
                status = found if ended else None  # else it was stopped
                until_s = time.monotonic() + DRAIN_S
            elif not open_now[file].take(lambda lines: record.write(OUTPUT, lines), time.time):
                del open_now[file]
        record.alive(output="grows")
    for channel in open_now.values():
        if rest := channel.lines.rest(time.time()):
            record.write(OUTPUT, rest)
    return status


def _end(record: Record, code: int) -> None:
    """Write how the command ended; code: below 0 the signal that ended it."""
    if code == 0:
        record.event("job.end", time.time())
        return
    if code < 0:
        kind = KINDS.get(-code, "other")
        message = f"ended by signal {-code} ({signal.strsignal(-code)})"
    else:
        kind, message = "other", f"exit code {code}"
    record.event("failure", time.time(), kind=kind, msg=message)


def say(record: Record, ending: str) -> None:
    """Print where the record is and what reads it."""
    folder = record.folder
    line = record.problem or f"{ending} in {folder}; next: goodput ingest auto {folder}"
    with contextlib.suppress(OSError):
        sys.stderr.write(f"goodput: {line}\n")
        sys.stderr.flush()
